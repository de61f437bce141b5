// A host's allocator that keeps a record of its allocations.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>

#include "held.h"
#include "sanitized.h"

namespace st::test {

enum class Failing { once, for_good };

/// Records what is allocated and which call must fail. It must outlive the context and everything made for it.
class Ledger {
 public:
  st_context_options options() {
    auto made = filled(st_context_options_init);
    made.threads = 2;
    made.alloc = [](void* user, size_t bytes, size_t align) { return static_cast<Ledger*>(user)->take(bytes, align); };
    made.free = [](void* user, void* memory) { static_cast<Ledger*>(user)->give_back(memory); };
    made.memory_user = this;
    return made;
  }
  int64_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  int64_t calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  /// Restarts the count; the `call`-th call from now returns NULL, either that one or all from there on.
  void fail_at(int64_t call, Failing failing = Failing::once) {
    const std::lock_guard lock(mutex_);
    calls_ = 0;
    first_failure_ = call;
    last_failure_ = failing == Failing::once ? call : kNever;
  }
  /// Stops failing; true if a call failed.
  bool fail_none() {
    const std::lock_guard lock(mutex_);
    const bool failed = calls_ > first_failure_;
    first_failure_ = kNever;
    return failed;
  }
  size_t skew = 0;  // bytes past the alignment for allocations of at least `skewed` bytes
  size_t skewed = 0;

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  void* take(size_t bytes, size_t align) {
    const std::lock_guard lock(mutex_);
    const int64_t call = calls_++;
    if (call >= first_failure_ && call <= last_failure_) return nullptr;
    EXPECT_GT(bytes, 0U);
    EXPECT_GE(align, 16U);
    EXPECT_EQ(align & (align - 1), 0U);
    auto* memory = static_cast<char*>(std::aligned_alloc(align, (bytes + 2 * align - 1) / align * align));
    std::fill_n(memory, bytes, '\x5A');  // no code may rely on zeros
    char* answer = memory + (bytes >= skewed ? skew : 0);
    out_[answer] = {memory, bytes};
    bytes_ += static_cast<int64_t>(bytes);
    return answer;
  }
  void give_back(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = out_.find(static_cast<char*>(memory));
    ASSERT_NE(found, out_.end()) << "freed memory that was not allocated";
    bytes_ -= static_cast<int64_t>(found->second.bytes);
    std::free(found->second.memory);
    out_.erase(found);
  }

  struct Piece {
    char* memory;
    size_t bytes;
  };
  std::mutex mutex_;
  std::map<char*, Piece> out_;
  int64_t bytes_ = 0, calls_ = 0, first_failure_ = kNever, last_failure_ = kNever;
};

/// The next call to fail after the `n`-th: at first each, then, for calls with thousands of allocations, fewer and fewer (earlier under a
/// sanitizer, which is ten times as slow), unless it is a long trial (tests/capi/README.md).
inline int64_t next_to_fail(int64_t n) {
  constexpr int64_t kDense = kSanitized ? 4 : 40;
  static const bool every = std::getenv("ST_LONG_TRIALS") != nullptr;
  return every ? n + 1 : n + 1 + n / kDense;
}

}  // namespace st::test
