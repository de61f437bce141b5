#include "guarded_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace st::fuzz {
namespace {

constexpr size_t kPage = 4096;
constexpr std::align_val_t kVector{64};

/// Accessible pages between two inaccessible ones; returns the first accessible address.
std::byte* map_between_guards(size_t inside) {
  void* whole = mmap(nullptr, inside + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) throw std::bad_alloc();
  std::byte* first = static_cast<std::byte*>(whole) + kPage;
  if (inside > 0 && mprotect(first, inside, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  return first;
}

}  // namespace

GuardedMemory::GuardedMemory(Draw& draw, int64_t bytes, int64_t unit) : bytes_(bytes) {
  const auto size = static_cast<size_t>(bytes);
  if (draw.chance(0.5)) {
    const int64_t before = unit < 64 && draw.chance(0.5) ? unit * draw.in(0, 5) : 0;
    whole_ = static_cast<std::byte*>(::operator new(size + static_cast<size_t>(before), kVector));
    data_ = whole_ + before;
  } else {
    const size_t inside = (size + kPage - 1) / kPage * kPage;
    data_ = map_between_guards(inside);
    whole_ = data_ - kPage;
    mapped_ = inside + 2 * kPage;
    if (draw.chance(0.5)) data_ += inside - size;
  }
  std::memset(data_, 0xFF, size);
}

GuardedMemory::~GuardedMemory() {
  if (mapped_ != 0) {
    munmap(whole_, mapped_);
  } else {
    ::operator delete(whole_, kVector);
  }
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : whole_(std::exchange(other.whole_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

bool GuardedMemory::is_untouched() const {
  return std::all_of(data_, data_ + bytes_, [](std::byte x) { return x == std::byte{0xFF}; });
}

}  // namespace st::fuzz
