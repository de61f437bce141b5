#include "allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> count{0};
thread_local int64_t until_one_fails = 0;

void* counted(void* memory) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (until_one_fails > 0 && --until_one_fails == 0) {
    std::free(memory);
    memory = nullptr;
  }
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

int64_t st::allocations() { return count.load(); }
void st::fail_allocation(int64_t n) { until_one_fails = n; }

void* operator new(size_t bytes) { return counted(std::malloc(bytes)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {  // used by std::stable_sort; a sanitizer has its own
  try {
    return operator new(bytes);
  } catch (...) {
    return nullptr;
  }
}
void* operator new(size_t bytes, std::align_val_t align) {
  const auto multiple = static_cast<size_t>(align);
  return counted(std::aligned_alloc(multiple, (bytes + multiple - 1) / multiple * multiple));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
