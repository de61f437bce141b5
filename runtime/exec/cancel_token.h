// How a running call is told to end: by its own sticky flag, or by a counter that many calls watch.
#pragma once

#include <atomic>
#include <cstdint>

namespace st {

/// cancel() and is_set() are for any thread, cancel() for signal handlers too; the rest is for the thread of the call that may be
/// cancelled.
class CancelToken {
 public:
  /// `epoch` (may be null) is counted up by whoever cancels all calls that are running; it outlives the token.
  explicit CancelToken(const std::atomic<uint64_t>* epoch = nullptr) : epoch_(epoch) { begin(); }

  /// Ends one call: the running one, or the next.
  void cancel() { flag_.store(true, std::memory_order_relaxed); }

  /// A call begins: what the counter counted before is not meant for it.
  void begin() {
    if (epoch_ != nullptr) seen_.store(epoch_->load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  bool is_set() const {
    return flag_.load(std::memory_order_relaxed) ||
           (epoch_ != nullptr && epoch_->load(std::memory_order_relaxed) != seen_.load(std::memory_order_relaxed));
  }
  /// Whether it is set; used up then.
  bool take() {
    if (!is_set()) return false;
    flag_.store(false, std::memory_order_relaxed);
    begin();
    return true;
  }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free, "or a signal handler could wait for the thread it interrupted");
  std::atomic<bool> flag_{false};
  const std::atomic<uint64_t>* epoch_;
  std::atomic<uint64_t> seen_{0};
};

}  // namespace st
