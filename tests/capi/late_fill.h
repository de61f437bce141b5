// Rows that a test delays, and cancels that arrive while a call waits for them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "sine_rows.h"

namespace st::test {

/// The sine's rows; each fill blocks until the test releases it.
class LateFill : public SineFill {
 public:
  LateFill();
  /// Releases all fills, including later ones.
  void let_go();
  /// Blocks all but the next `passes` fills.
  void hold(int passes = 0);
  /// Whether a fill is blocked.
  bool is_late() const;

 private:
  mutable std::mutex gate_;
  std::condition_variable opened_;
  bool free_ = false;
  int passes_ = 0, late_ = 0;
};

enum class CancelBy { trainer, context, signal_handler };
constexpr CancelBy kAllCancels[] = {CancelBy::trainer, CancelBy::context, CancelBy::signal_handler};

/// Cancels shortly after `when` becomes true: from another thread, or in a SIGUSR1 handler that interrupts the thread that created this.
class LateCancel {
 public:
  LateCancel(CancelBy by, st_context* context, st_trainer* trainer, std::function<bool()> when);
  ~LateCancel();
  LateCancel(const LateCancel&) = delete;
  LateCancel& operator=(const LateCancel&) = delete;

  /// Time since the cancel; waits for it first.
  std::chrono::steady_clock::duration age();

 private:
  std::chrono::steady_clock::time_point at_;
  void (*handler_before_)(int);
  std::thread thread_;
};

}  // namespace st::test
