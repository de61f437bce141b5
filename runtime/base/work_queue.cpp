#include "base/work_queue.h"

#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/heap.h"

namespace st {

WorkQueue::~WorkQueue() {
  drain();
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  came_.notify_one();
  thread_.join();
}

void WorkQueue::count_cancels(const std::atomic<uint64_t>& now, std::atomic<uint64_t>& of_call) {
  cancels_now_ = &now;
  cancels_of_call_ = &of_call;
}

void WorkQueue::start() {
  if (has_thread()) return;
  try {
    thread_ = std::thread([this, heap = Heap::current()] {
      start_in_default_float_mode();
      const FloatMode mode;
      const HeapScope owners(heap);
      thread_main();
    });
  } catch (const std::system_error& refusal) {
    fail(Code::unavailable, text("cannot start a thread for pending work (", refusal.what(),
                                 "); raise the limit on threads or processes, or use blocking calls, in a recipe overlap off"));
  }
}

void WorkQueue::post(Work& work) {
  start();
  work.next_ = nullptr;
  work.error_ = nullptr;
  if (cancels_now_ != nullptr) work.cancels_ = *cancels_now_;
  {
    const std::lock_guard lock(mutex_);
    work.number_ = ++posted_;
    (first_ == nullptr ? first_ : last_->next_) = &work;
    last_ = &work;
  }
  came_.notify_one();
}

void WorkQueue::thread_main() {
  for (Lock lock(mutex_);;) {
    came_.wait(lock, [this] { return is_over_ || (first_ != nullptr && !runs_); });
    if (is_over_) return;
    run_first(lock);
  }
}

/// Nothing else is under way.
void WorkQueue::run_first(Lock& lock) {
  Work& work = *std::exchange(first_, first_->next_);
  runs_ = true;
  lock.unlock();
  if (cancels_of_call_ != nullptr) *cancels_of_call_ = work.cancels_;
  std::exception_ptr error;
  try {
    work.run();
  } catch (...) {
    error = std::current_exception();
  }
  if (error) work.error_ = std::move(error);
  lock.lock();
  runs_ = false;
  done_.store(done_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  ended_.notify_all();
  if (first_ != nullptr) came_.notify_one();
}

void WorkQueue::wait_until(uint64_t number) {
  Lock lock(mutex_);
  const auto is_done = [&] { return done_.load(std::memory_order_relaxed) >= number; };
  while (!is_done()) {
    if (!runs_)
      run_first(lock);
    else
      ended_.wait(lock, [&] { return is_done() || !runs_; });  // the other thread may continue with later items
  }
}

void WorkQueue::wait(const Work& work) {
  finish(work);
  if (work.error_) std::rethrow_exception(work.error_);
}

}  // namespace st
