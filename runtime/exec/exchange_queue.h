// A rank's exchanges, in their order: while it computes, those that it posts are made by a thread beside its own.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

#include "comm/communicator.h"
#include "exec/planned_exchange.h"

namespace st {

/// Used by the thread that computes, which makes what the other has not begun when it has to wait anyway. Nothing is allocated by a step.
class ExchangeQueue {
 public:
  /// Borrows the communicator, whose calls are made here as long as something is under way.
  explicit ExchangeQueue(Communicator& ranks) : ranks_(ranks) {}
  ~ExchangeQueue();
  ExchangeQueue(const ExchangeQueue&) = delete;
  ExchangeQueue& operator=(const ExchangeQueue&) = delete;

  Communicator& ranks() const { return ranks_; }
  /// Starts the thread, once; without it what is posted is made at once. Throws unavailable where that cannot be.
  void start();
  bool is_beside() const { return thread_.joinable(); }

  /// Makes it behind those before it. Its memory stays until wait().
  void post(PlannedExchange& exchange, const Contributors& contributors);
  /// Until what was posted of it last is over. Throws what that or one before it threw, with the op; those behind an error are not made.
  void wait(const PlannedExchange& exchange);
  /// All posted ones, then this one, here.
  void run(PlannedExchange& exchange, const Contributors& contributors);
  /// Whether one has failed that nobody has waited for yet: then wait_for_all() throws.
  bool has_failed() const { return has_failed_.load(std::memory_order_relaxed); }
  void wait_for_all();
  /// What was posted is not waited for: where something is under way, the group ends (communicator.h) for this reason.
  void give_up(std::string_view reason) noexcept;

  /// Makes `exchange` of the thread that computes, which nothing hides, with nothing else under way.
  void alone(const std::function<void()>& exchange);

  /// Seconds so far in which the thread that computes waited here, or exchanged itself: what computing did not hide.
  double exposed_seconds() const { return exposed_; }
  struct Exposed {
    double began = 0, ended = 0;  // os::seconds()
  };
  static constexpr uint64_t kKept = 64;
  /// How often so far, and each of the last kKept of them. To be asked while nothing is under way.
  uint64_t exposures() const { return exposures_; }
  const Exposed& exposure(uint64_t number) const { return kept_[number % kKept]; }

 private:
  class Clock;
  using Lock = std::unique_lock<std::mutex>;
  struct Item {
    PlannedExchange* exchange = nullptr;
    Contributors contributors;
  };
  static constexpr uint64_t kRoom = 64;

  void live();
  void make_next(Lock& lock);
  void wait_until(Lock& lock, uint64_t number);
  void rethrow(Lock& lock);

  Communicator& ranks_;
  double exposed_ = 0;
  std::array<Exposed, kKept> kept_{};
  uint64_t exposures_ = 0;
  std::atomic<bool> has_failed_{false};
  std::mutex mutex_;
  std::condition_variable came_, made_;
  // Under the mutex.
  std::array<Item, kRoom> items_;
  uint64_t posted_ = 0, begun_ = 0, done_ = 0;  // how many, since the beginning
  bool skips_ = false;                          // what is left is not made
  bool ends_ = false;
  std::exception_ptr error_;
  Op failed_ = Op::await;
  std::thread thread_;
};

}  // namespace st
