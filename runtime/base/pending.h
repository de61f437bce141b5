// Work that goes on after the call which began it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace st {

/// One piece of work on a thread of its own, or on somebody else's. Its error is kept, and is everyone's who waits. Safe to ask from
/// several threads.
class Pending {
 public:
  /// Throws unavailable when no thread can be started. The work is let go of, with all that it holds, before it counts as done.
  explicit Pending(std::function<void()> work);
  /// Of work that somebody else does, who calls begin() and, once, end(). Until it begins nothing is under way.
  Pending() : done_(true) {}
  void begin();
  /// With what the work threw, or null. Afterwards this may be gone.
  void end(std::exception_ptr error);
  /// Waits for the end.
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  bool is_done() const;
  /// At most so long, below 0 as long as it takes; false: still under way. Throws what the work threw, each time.
  bool wait(int64_t milliseconds) const;
  /// What the work threw, while nobody has got it from wait(); null: nothing, or it is still under way.
  std::exception_ptr untold_error() const;

 private:
  void run(std::function<void()> work);

  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool done_ = false;
  mutable bool error_told_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace st
