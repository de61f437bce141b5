#include "process_memory.h"

#include <atomic>
#include <cerrno>

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

std::atomic<int64_t> count{0}, since{0}, first_failure{kNever}, last_failure{kNever}, lent{0};
std::atomic<size_t> largest{0};

bool counted(size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  for (size_t seen = largest.load(); bytes > seen && !largest.compare_exchange_weak(seen, bytes);) continue;
  if (first_failure.load() == kNever) return true;
  const int64_t at = since.fetch_add(1);
  return at < first_failure.load() || at > last_failure.load();
}

}  // namespace

// An executable's malloc replaces the library's; glibc keeps its own under these names.
extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

[[gnu::visibility("default")]] void* malloc(size_t bytes) { return counted(bytes) ? __libc_malloc(bytes) : nullptr; }
[[gnu::visibility("default")]] void* calloc(size_t items, size_t bytes) {
  return counted(items * bytes) ? __libc_calloc(items, bytes) : nullptr;
}
[[gnu::visibility("default")]] void* realloc(void* memory, size_t bytes) {
  return counted(bytes) ? __libc_realloc(memory, bytes) : nullptr;
}
[[gnu::visibility("default")]] void* memalign(size_t alignment, size_t bytes) {
  return counted(bytes) ? __libc_memalign(alignment, bytes) : nullptr;
}
[[gnu::visibility("default")]] void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
[[gnu::visibility("default")]] int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"

// The program's own objects are not counted: the library does not use these operators.
void* operator new(size_t bytes) { return __libc_malloc(bytes); }
void operator delete(void* memory) noexcept { __libc_free(memory); }
void operator delete(void* memory, size_t) noexcept { __libc_free(memory); }

namespace st::test {

int64_t mallocs() { return count; }
size_t largest_malloc() { return largest.exchange(0); }

void fail_malloc(int64_t n, Failing failing) {
  since = 0;
  last_failure = failing == Failing::once ? n : kNever;
  first_failure = n;
}

bool fail_no_malloc() {
  const bool failed = since.load() > first_failure.load();
  first_failure = kNever;
  return failed;
}

st_context_options options_past_malloc() {
  auto options = filled(st_context_options_init);
  options.threads = 2;
  options.alloc = [](void*, size_t bytes, size_t align) {
    constexpr size_t kRoom = 64;  // for the size; a multiple of every alignment requested here
    auto* memory = static_cast<char*>(__libc_memalign(std::max(align, kRoom), bytes + kRoom));
    *reinterpret_cast<size_t*>(memory) = bytes;
    lent += static_cast<int64_t>(bytes);
    return static_cast<void*>(memory + kRoom);
  };
  options.free = [](void*, void* memory) {
    char* whole = static_cast<char*>(memory) - 64;
    lent -= static_cast<int64_t>(*reinterpret_cast<size_t*>(whole));
    __libc_free(whole);
  };
  return options;
}

int64_t bytes_past_malloc() { return lent; }

}  // namespace st::test
