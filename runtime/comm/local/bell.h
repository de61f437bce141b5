// Wakes the one thread that waits for something to happen.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/spin.h"

namespace st {

/// Rung by any thread when something has happened; waited for by one, which sees what was done before the ring.
class Bell {
 public:
  void ring() noexcept {
    rings_.fetch_add(1);
    if (!is_asleep_.load()) return;
    const std::lock_guard lock(mutex_);  // or it would fall asleep between its last look and the call
    call_.notify_one();
  }

  uint32_t rings() const { return rings_.load(std::memory_order_acquire); }

  /// Returns when it has been rung more often than `heard`, or after `seconds`: first awake, where a core is to be had, then asleep.
  void wait(uint32_t heard, double seconds, bool spins) {
    const auto began = std::chrono::steady_clock::now();
    if (spins) {
      const auto end = began + std::min<std::chrono::duration<double>>(kSpin, std::chrono::duration<double>(seconds));
      do {
        for (int i = 0; i < 32; ++i) {
          if (rings() != heard) return;
          spin_pause();
        }
      } while (std::chrono::steady_clock::now() < end);
    }
    std::unique_lock lock(mutex_);
    is_asleep_.store(true);
    const auto end = began + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
    call_.wait_until(lock, end, [&] { return rings_.load() != heard; });
    is_asleep_.store(false);
  }

 private:
  static constexpr std::chrono::microseconds kSpin{20};  // longer than another rank takes to answer, too short to matter to anybody

  alignas(64) std::atomic<uint32_t> rings_{0};
  std::atomic<bool> is_asleep_{false};
  std::mutex mutex_;
  std::condition_variable call_;
};

}  // namespace st
