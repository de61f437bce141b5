#include "allocation_count.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace {

std::atomic<int64_t> count{0};

void counted() { count.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

int64_t st::allocation_count() { return count.load(); }

// An executable's malloc replaces the C library's; glibc keeps its own under these names.
extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

[[gnu::visibility("default")]] void* malloc(size_t bytes) {
  counted();
  return __libc_malloc(bytes);
}
[[gnu::visibility("default")]] void* calloc(size_t items, size_t bytes) {
  counted();
  return __libc_calloc(items, bytes);
}
[[gnu::visibility("default")]] void* realloc(void* memory, size_t bytes) {
  counted();
  return __libc_realloc(memory, bytes);
}
[[gnu::visibility("default")]] void* memalign(size_t alignment, size_t bytes) {
  counted();
  return __libc_memalign(alignment, bytes);
}
[[gnu::visibility("default")]] void* aligned_alloc(size_t alignment, size_t bytes) {
  counted();
  return __libc_memalign(alignment, bytes);
}
[[gnu::visibility("default")]] int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  counted();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"
