#include "parts/stage_watch.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/os/machine.h"

namespace st {

StageWatch::StageWatch(double deadline, std::function<void()> report) : deadline_(deadline), report_(std::move(report)) {
  try {
    thread_ = std::thread([this] {
      start_in_default_float_mode();
      watch();
    });
  } catch (const std::system_error& refusal) {
    fail(Code::unavailable, text("pipeline: cannot start a thread (", refusal.what(), "); raise the limit on threads or processes"));
  }
}

StageWatch::~StageWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.join();
}

void StageWatch::watch() {
  const std::chrono::duration<double> period(std::clamp(deadline_ / 8, 1e-3, 0.25));
  std::unique_lock lock(mutex_);
  uint64_t seen = 0;
  double looked = os::seconds(), began = looked;
  while (!over_.wait_for(lock, period, [&] { return is_over_; })) {
    const double now = os::seconds();
    if (now - looked > 1) began += now - looked;  // this process was stopped
    looked = now;
    const uint64_t events = events_.load();
    if (events != seen || events % 2 == 0) {
      seen = events;
      began = now;
    } else if (now - began > deadline_) {
      return report_();
    }
  }
}

}  // namespace st
