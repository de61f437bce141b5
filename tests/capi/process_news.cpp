#include "process_news.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr size_t kLarge = size_t{64} << 10;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

std::atomic<int64_t> large{0};
std::atomic<int64_t> made_since{0}, first_failure{kNever}, last_failure{kNever};

bool fails_now() {
  if (first_failure.load() == kNever) return false;
  const int64_t at = made_since.fetch_add(1);
  return at >= first_failure.load() && at <= last_failure.load();
}

void* made(size_t bytes, size_t align) {
  if (bytes >= kLarge) ++large;
  if (fails_now()) return nullptr;
  const size_t rounded = (std::max<size_t>(bytes, 1) + align - 1) / align * align;
  return align <= alignof(std::max_align_t) ? std::malloc(rounded) : std::aligned_alloc(align, rounded);
}

void* made_or_thrown(size_t bytes, size_t align) {
  void* memory = made(bytes, align);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return made_or_thrown(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes) { return made_or_thrown(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t align) { return made_or_thrown(bytes, static_cast<size_t>(align)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return made(bytes, alignof(std::max_align_t)); }
// Not inlined, or GCC 12 sees free() on what it takes for the standard new's.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace st::test {

void fail_new(int64_t n, Failing failing) {
  made_since = 0;
  last_failure = failing == Failing::once ? n : kNever;
  first_failure = n;
}

bool fail_no_new() {
  const bool failed = made_since.load() > first_failure.load();
  first_failure = kNever;
  return failed;
}

int64_t next_to_fail(int64_t n) {
  static const bool every = std::getenv("ST_LONG_TRIALS") != nullptr;
  return every ? n + 1 : n + 1 + n / 100;
}

int64_t large_news() { return large; }

}  // namespace st::test
