// Rows that a test holds back, and cancels that come while somebody waits for them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "sine_rows.h"

namespace st::test {

/// The sine's rows, each fill of them held until the test lets it go.
class LateFill : public SineFill {
 public:
  LateFill();
  /// All fills, also those to come.
  void let_go();
  /// All but the next `passes`.
  void hold(int passes = 0);
  /// A fill waits to be let go.
  bool is_late() const;

 private:
  mutable std::mutex gate_;
  std::condition_variable opened_;
  bool free_ = false;
  int passes_ = 0, late_ = 0;
};

enum class CancelBy { trainer, context, signal_handler };
constexpr CancelBy kAllCancels[] = {CancelBy::trainer, CancelBy::context, CancelBy::signal_handler};

/// Cancels a moment after `when` has come true: on another thread, or in a handler of SIGUSR1 that interrupts the one that made this.
class LateCancel {
 public:
  LateCancel(CancelBy by, st_context* context, st_trainer* trainer, std::function<bool()> when);
  ~LateCancel();
  LateCancel(const LateCancel&) = delete;
  LateCancel& operator=(const LateCancel&) = delete;

  /// How long ago it was; waits for it first.
  std::chrono::steady_clock::duration age();

 private:
  std::chrono::steady_clock::time_point at_;
  void (*handler_before_)(int);
  std::thread thread_;
};

}  // namespace st::test
