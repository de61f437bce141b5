// Notices that a function of a pipeline's host does not return.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace st {

/// Its thread looks at the function that the owner's thread runs; time in which this process is stopped does not count.
class StageWatch {
 public:
  /// `report` is called at most once, on the watch's thread, when a function has run for `deadline` seconds; must not throw. Throws
  /// unavailable when the thread cannot be started.
  StageWatch(double deadline, std::function<void()> report);
  ~StageWatch();
  StageWatch(const StageWatch&) = delete;
  StageWatch& operator=(const StageWatch&) = delete;

  void begin() { ++events_; }
  void end() { ++events_; }

 private:
  void watch();

  const double deadline_;
  const std::function<void()> report_;
  std::atomic<uint64_t> events_{0};  // odd: a function runs
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace st
