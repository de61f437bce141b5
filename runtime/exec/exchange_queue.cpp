#include "exec/exchange_queue.h"

#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/heap.h"
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

void ExchangeQueue::start() {
  if (is_beside()) return;
  try {
    thread_ = std::thread([this, heap = Heap::current()] {
      start_in_default_float_mode();
      const FloatMode mode;
      const HeapScope owners(heap);
      thread_main();
    });
  } catch (const std::system_error& refusal) {
    fail(Code::unavailable, text("trainer: cannot start the thread for collectives (", refusal.what(), "); use overlap off"));
  }
}

ExchangeQueue::~ExchangeQueue() {
  give_up("its step was abandoned");
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  came_.notify_one();
  thread_.join();
}

void ExchangeQueue::thread_main() {
  for (Lock lock(mutex_);;) {
    came_.wait(lock, [this] { return ends_ || (begun_ < posted_ && begun_ == done_); });
    if (ends_) return;
    make_next(lock);
  }
}

/// Nothing else is under way.
void ExchangeQueue::make_next(Lock& lock) {
  const Item item = items_[begun_++ % kRoom];
  const bool is_made = !skips_ && !error_;
  std::exception_ptr error;
  lock.unlock();
  try {
    if (is_made) item.exchange->run(item.contributors);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  ++done_;
  if (error) {
    error_ = std::move(error);
    failed_ = item.exchange->op();
    has_failed_.store(true, std::memory_order_relaxed);
  }
  made_.notify_one();
  if (begun_ < posted_) came_.notify_one();
}

void ExchangeQueue::wait_until(Lock& lock, uint64_t number) {
  while (done_ < number) {
    if (begun_ == done_)
      make_next(lock);
    else
      made_.wait(lock, [&] { return done_ >= number || begun_ == done_; });  // the other thread may go on with those behind it
  }
}

void ExchangeQueue::rethrow(Lock& lock) {
  if (!error_) return;
  wait_until(lock, posted_);  // without making them
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
  {
    Lock lock(mutex_);
    if (posted_ - done_ == kRoom) {
      const Clock clock(*this);
      wait_until(lock, done_ + 1);
    }
    items_[posted_ % kRoom] = {&exchange, contributors};
    exchange.queued_as = ++posted_;
  }
  came_.notify_one();
}

void ExchangeQueue::wait(const PlannedExchange& exchange) {
  Lock lock(mutex_);
  if (done_ < exchange.queued_as) {
    const Clock clock(*this);
    wait_until(lock, exchange.queued_as);
  }
  rethrow(lock);
}

void ExchangeQueue::wait_for_all() {
  Lock lock(mutex_);
  if (done_ < posted_) {
    const Clock clock(*this);
    wait_until(lock, posted_);
  }
  rethrow(lock);
}

bool ExchangeQueue::is_idle() {
  const Lock lock(mutex_);
  return done_ == posted_;
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
  Lock lock(mutex_);
  if (done_ < posted_) {
    skips_ = true;
    lock.unlock();
    ranks_.abort(reason);
    lock.lock();
    wait_until(lock, posted_);
    skips_ = false;
  }
  error_ = nullptr;
  has_failed_.store(false, std::memory_order_relaxed);
}

}  // namespace st
