#include "base/heap.h"

#include <algorithm>
#include <cstdlib>

namespace st {
namespace {

constinit thread_local Heap* serving = nullptr;

/// Precedes every block.
struct Header {
  Heap* heap;
  size_t offset;  // of the block within its allocation
};

constexpr size_t kAlign = alignof(std::max_align_t);
static_assert(sizeof(Header) == kAlign);

Header& header_of(void* block) { return *(static_cast<Header*>(block) - 1); }

}  // namespace

Heap::Own Heap::create(const HostAllocator& host) { return Own(new (host.take(sizeof(Heap), kAlign)) Heap(host)); }

void Heap::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const HostAllocator host = host_;
  host.give_back(this);
}

Heap* Heap::current() noexcept { return serving; }

void Heap::serve_first(Heap* heap) noexcept {
  if (serving == nullptr) serving = heap;
}

void* Heap::take(size_t bytes, size_t align) {
  Heap* heap = serving;
  const size_t offset = std::max(align, sizeof(Header));
  if (bytes > PTRDIFF_MAX - 2 * offset) return nullptr;
  const size_t whole = (bytes + offset + offset - 1) / offset * offset;  // aligned_alloc requires a multiple
  void* memory = heap != nullptr   ? heap->host_.take(whole, offset)
                 : offset > kAlign ? std::aligned_alloc(offset, whole)
                                   : std::malloc(whole);
  if (memory == nullptr) return nullptr;
  if (heap != nullptr) heap->references_.fetch_add(1, std::memory_order_relaxed);
  void* block = static_cast<std::byte*>(memory) + offset;
  header_of(block) = {heap, offset};
  return block;
}

void Heap::give_back(void* block) noexcept {
  if (block == nullptr) return;
  const Header header = header_of(block);
  void* memory = static_cast<std::byte*>(block) - header.offset;
  if (header.heap == nullptr) return std::free(memory);
  header.heap->host_.give_back(memory);
  header.heap->release();
}

HeapScope::HeapScope(Heap* heap) noexcept : serving_(serving), outer_(serving_) { serving_ = heap; }
HeapScope::~HeapScope() { serving_ = outer_; }

}  // namespace st
