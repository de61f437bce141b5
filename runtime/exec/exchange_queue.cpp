#include "exec/exchange_queue.h"

#include <utility>

#include "base/error.h"
#include "base/os/machine.h"

namespace st {

/// Adds its lifetime to the exposed time, which computing did not hide.
class ExchangeQueue::Clock {
 public:
  explicit Clock(ExchangeQueue& of) : of_(of), began_(os::seconds()) {}
  ~Clock() { of_.add_exposed(began_, os::seconds()); }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

 private:
  ExchangeQueue& of_;
  const double began_;
};

ExchangeQueue::~ExchangeQueue() { give_up("its step was abandoned"); }

/// On either thread, one at a time.
void ExchangeQueue::run_posted(PlannedExchange& exchange, int contributors) {
  if (skips_.load(std::memory_order_relaxed) || has_failed()) return;
  try {
    exchange.run(contributors);
  } catch (...) {
    error_ = std::current_exception();
    failed_ = exchange.op();
    has_failed_.store(true, std::memory_order_release);
  }
}

void ExchangeQueue::await(const Item& item) {
  if (queue_.is_done(item)) return;
  const Clock clock(*this);
  queue_.wait(item);
}

void ExchangeQueue::await_all() {
  if (queue_.is_idle()) return;
  const Clock clock(*this);
  queue_.drain();
}

void ExchangeQueue::rethrow() {
  if (!has_failed()) return;
  queue_.drain();  // without running them
  has_failed_.store(false, std::memory_order_relaxed);
  try {
    std::rethrow_exception(std::exchange(error_, nullptr));
  } catch (Error& error) {
    error.place.op = std::string(name_of(failed_));
    throw;
  }
}

void ExchangeQueue::post(PlannedExchange& exchange, int contributors) {
  if (!is_beside()) return run(exchange, contributors);
  Item& item = items_[posted_ % kRoom];
  await(item);
  item.of = this;
  item.exchange = &exchange;
  item.contributors = contributors;
  queue_.post(item);
  exchange.queued_as = ++posted_;
}

void ExchangeQueue::wait(const PlannedExchange& exchange) {
  if (posted_ - exchange.queued_as < kRoom) await(items_[(exchange.queued_as - 1) % kRoom]);
  rethrow();
}

void ExchangeQueue::wait_for_all() {
  await_all();
  rethrow();
}

void ExchangeQueue::run(PlannedExchange& exchange, int contributors) {
  if (is_beside()) wait_for_all();
  const Clock clock(*this);
  exchange.run(contributors);
}

void ExchangeQueue::alone(const std::function<void()>& exchange) {
  const Clock clock(*this);
  exchange();
}

void ExchangeQueue::add_exposed(double began, double ended) {
  exposed_ += ended - began;
  kept_[exposures_++ % kKept] = {began, ended};
}

void ExchangeQueue::give_up(std::string_view reason) noexcept {
  if (!is_idle()) {
    skips_ = true;
    ranks_.abort(reason);
    queue_.drain();
    skips_ = false;
  }
  error_ = nullptr;
  has_failed_.store(false, std::memory_order_relaxed);
}

}  // namespace st
