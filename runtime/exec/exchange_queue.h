// A rank's collectives in a run of a plan, in order. A second thread runs posted ones while the rank computes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>

#include "base/work_queue.h"
#include "comm/communicator.h"
#include "exec/planned_exchange.h"

namespace st {

/// A WorkQueue of collectives, used by the computing thread: it counts the time that computing does not hide, and runs nothing after an
/// error. A step allocates nothing.
class ExchangeQueue {
 public:
  /// Borrows the communicator; while something is in flight, only this queue may call it.
  explicit ExchangeQueue(Communicator& ranks) : ranks_(ranks) {}
  ~ExchangeQueue();
  ExchangeQueue(const ExchangeQueue&) = delete;
  ExchangeQueue& operator=(const ExchangeQueue&) = delete;

  Communicator& ranks() const { return ranks_; }
  /// Starts the thread, once; without it post() runs the collective at once. Throws unavailable if no thread can be started.
  void start() { queue_.start(); }
  bool is_beside() const { return queue_.has_thread(); }

  /// Queues a collective after those posted before. Its memory must stay valid until wait().
  void post(PlannedExchange& exchange, int contributors);
  /// Waits for the last post of `exchange`. Throws its error or that of an earlier one, with the op; collectives after an error are not
  /// run.
  void wait(const PlannedExchange& exchange);
  /// Waits for all posted collectives, then runs this one on the calling thread.
  void run(PlannedExchange& exchange, int contributors);
  /// Whether a collective has failed whose error was not thrown yet: then wait_for_all() throws.
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  void wait_for_all();
  /// Whether nothing posted is left: then the calling thread alone uses the streams of exchanges.
  bool is_idle() const { return queue_.is_idle(); }
  /// Abandons posted collectives; if one is in flight, aborts the group (communicator.h) with this reason.
  void give_up(std::string_view reason) noexcept;

  /// Runs `exchange` on the computing thread, with nothing else in flight; counts as exposed.
  void alone(const std::function<void()>& exchange);

  /// Counts a time (os::seconds()) in which the computing thread waited for other ranks elsewhere.
  void add_exposed(double began, double ended);

  /// Total seconds in which the computing thread waited here or ran collectives itself, and what was added: time not hidden by computing.
  double exposed_seconds() const { return exposed_; }
  struct Exposed {
    double began = 0, ended = 0;  // os::seconds()
  };
  static constexpr uint64_t kKept = 64;
  /// Number of exposed intervals so far; the last kKept of them are kept. Call while nothing is in flight.
  uint64_t exposures() const { return exposures_; }
  const Exposed& exposure(uint64_t number) const { return kept_[number % kKept]; }

 private:
  class Clock;
  struct Item final : WorkQueue::Work {
    void run() override { of->run_posted(*exchange, contributors); }

    ExchangeQueue* of = nullptr;
    PlannedExchange* exchange = nullptr;
    int contributors = 0;
  };
  static constexpr uint64_t kRoom = 64;

  void run_posted(PlannedExchange& exchange, int contributors);
  void await(const Item& item);
  void await_all();
  void rethrow();

  Communicator& ranks_;
  double exposed_ = 0;
  std::array<Exposed, kKept> kept_{};
  uint64_t exposures_ = 0;
  uint64_t posted_ = 0;            // total since construction
  std::array<Item, kRoom> items_;  // a ring
  std::atomic<bool> skips_{false};
  std::atomic<bool> has_failed_{false};
  std::exception_ptr error_;  // if has_failed_; the later items are not run then
  Op failed_ = Op::await;
  WorkQueue queue_;  // last, since its thread uses the others
};

}  // namespace st
