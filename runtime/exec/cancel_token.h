// Cancels a running call, by its own sticky flag or by a counter that many calls watch.
#pragma once

#include <atomic>
#include <cstdint>

namespace st {

/// cancel() and is_set(): any thread; cancel() also from signal handlers. Other functions: only the thread of the call to be cancelled.
class CancelToken {
 public:
  /// `epoch` (may be null, must outlive the token): a counter that is incremented to cancel all running calls.
  explicit CancelToken(const std::atomic<uint64_t>* epoch = nullptr) : epoch_(epoch) { begin(); }

  /// Cancels one call: the running one, or the next.
  void cancel() { flag_.store(true, std::memory_order_relaxed); }

  /// Starts a call: earlier increments of the counter do not cancel it.
  void begin() {
    if (epoch_ != nullptr) seen_.store(epoch_->load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  bool is_set() const {
    return flag_.load(std::memory_order_relaxed) ||
           (epoch_ != nullptr && epoch_->load(std::memory_order_relaxed) != seen_.load(std::memory_order_relaxed));
  }
  /// Returns whether it is set, and resets it.
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
