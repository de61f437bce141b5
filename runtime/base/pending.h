// Work that continues after the call that started it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace st {

/// One work item on its own thread or on another. Its error is kept and thrown to everyone who waits. Safe to query from several threads.
class Pending {
 public:
  /// Throws unavailable when no thread can be started. The work and all that it holds is destroyed before it counts as done.
  explicit Pending(std::function<void()> work);
  /// For work on another thread, which calls begin() and then end(), once. Done until it begins.
  Pending() : done_(true) {}
  void begin();
  /// `error`: what the work threw, or null. This object may be gone when end() returns.
  void end(std::exception_ptr error);
  /// Waits for the end.
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  bool is_done() const;
  /// Waits at most `milliseconds`; negative: without limit. False: still running. Throws what the work threw, each time.
  bool wait(int64_t milliseconds) const;
  /// The error that the work threw, if no wait() has thrown it yet; null: none, or still running.
  std::exception_ptr unreported_error() const;

 private:
  void run(std::function<void()> work);

  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool done_ = false;
  mutable bool error_reported_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace st
