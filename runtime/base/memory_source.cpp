#include "base/memory_source.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"

namespace st {
namespace {

std::byte* take_from(const HostAllocator& host, int64_t bytes) {
  void* memory = call_host(host.alloc, host.user, static_cast<size_t>(bytes), MemorySource::kAlign);
  require(memory != nullptr, Code::out_of_memory, "memory: the host's alloc gave NULL for ", bytes, " bytes (", text_of_bytes(bytes),
          "), aligned to ", MemorySource::kAlign, "; give it more, or use a smaller model or batch");
  if (const auto rest = reinterpret_cast<uintptr_t>(memory) % MemorySource::kAlign; rest != 0) {
    call_host(host.free, host.user, memory);
    fail(Code::callback, text("memory: the host's alloc gave an address ", rest, " bytes past a multiple of ", MemorySource::kAlign,
                              " for ", bytes, " bytes; it must keep to the alignment that it is asked for"));
  }
  std::memset(memory, 0, static_cast<size_t>(bytes));
  return static_cast<std::byte*>(memory);
}

}  // namespace

MemorySource::MemorySource(const HostAllocator& host) : host_(host) {
  check((host.alloc == nullptr) == (host.free == nullptr),
        "memory: ", host.alloc == nullptr ? "free is given without alloc" : "alloc is given without free", "; give both or neither");
}

Memory::Memory(int64_t bytes, std::shared_ptr<MemorySource> source) : source_(std::move(source)), size_(bytes) {
  check(bytes >= 0, "memory: ", bytes, " bytes were asked for");
  if (bytes > 0 && source_ && source_->is_hosts())
    hosts_ = take_from(source_->host(), bytes);
  else
    pages_ = os::Pages(bytes);
  if (source_) source_->allocated_ += size_;
}

Memory::~Memory() {
  if (hosts_ != nullptr) call_host(source_->host().free, source_->host().user, hosts_);
  if (source_) source_->allocated_ -= size_;
}

Memory::Memory(Memory&& other) noexcept
    : source_(std::move(other.source_)),
      pages_(std::move(other.pages_)),
      hosts_(std::exchange(other.hosts_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(source_, other.source_);
  std::swap(pages_, other.pages_);
  std::swap(hosts_, other.hosts_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace st
