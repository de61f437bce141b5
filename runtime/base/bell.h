// Wakes the one thread that waits for an event.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/spin.h"

namespace st {

/// Any thread may ring it; one thread waits for it and then sees all writes before the ring.
class Bell {
 public:
  void ring() noexcept {
    rings_.fetch_add(1);
    if (!is_asleep_.load()) return;
    const std::lock_guard lock(mutex_);  // or the waiter could fall asleep between its last check and the notification
    call_.notify_one();
  }

  uint32_t rings() const { return rings_.load(std::memory_order_acquire); }

  /// Returns when it has been rung more than `heard` times, or after `seconds`. Polls for kAwake, spinning between yields if `spins` (there
  /// is a core for each rank); then sleeps.
  void wait(uint32_t heard, double seconds, bool spins) {
    const auto began = std::chrono::steady_clock::now();
    const auto awake_to = began + std::min<std::chrono::duration<double>>(kAwake, std::chrono::duration<double>(seconds));
    do {
      for (int i = 0; i < (spins ? 32 : 1); ++i) {
        if (rings() != heard) return;
        spin_pause();
      }
      std::this_thread::yield();  // the awaited thread may be queued on this core
    } while (std::chrono::steady_clock::now() < awake_to);
    std::unique_lock lock(mutex_);
    is_asleep_.store(true);
    const auto end = began + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
    call_.wait_until(lock, end, [&] { return rings_.load() != heard; });
    is_asleep_.store(false);
  }

 private:
  static constexpr std::chrono::microseconds kAwake{20};  // longer than another rank takes to answer, too short to cost other threads much

  alignas(64) std::atomic<uint32_t> rings_{0};
  std::atomic<bool> is_asleep_{false};
  std::mutex mutex_;
  std::condition_variable call_;
};

}  // namespace st
