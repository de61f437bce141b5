#include "base/work_queue.h"

#include <exception>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/heap.h"

namespace st {

WorkQueue::~WorkQueue() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  came_.notify_one();
  thread_.join();
}

WorkQueue::Prepared WorkQueue::prepare(std::function<void()> work) {
  Prepared prepared;
  {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) {
      spare_.emplace_back();
      ++room_;
    }
    prepared.item_.splice(prepared.item_.end(), spare_, spare_.begin());
  }
  prepared.item_.front().work = std::move(work);
  if (!thread_.joinable()) start();
  return prepared;
}

void WorkQueue::make_room(size_t items) {
  const std::lock_guard lock(mutex_);
  for (; room_ < items; ++room_) spare_.emplace_back();
}

void WorkQueue::start() {
  try {
    thread_ = std::thread([this, heap = Heap::current()] {
      start_in_default_float_mode();
      const FloatMode mode;
      const HeapScope owners(heap);
      run();
    });
  } catch (const std::system_error& refusal) {
    fail(Code::unavailable, text("pending: cannot start a thread (", refusal.what(), "); use the blocking call instead"));
  }
}

void WorkQueue::post(Prepared prepared, Pending& pending) noexcept {
  pending.begin();
  prepared.item_.front().pending = &pending;
  {
    const std::lock_guard lock(mutex_);
    items_.splice(items_.end(), prepared.item_);
    ++left_;
  }
  came_.notify_one();
}

void WorkQueue::drain() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return left_ == 0; });
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    came_.wait(lock, [&] { return over_ || !items_.empty(); });
    if (items_.empty()) return;
    std::list<Item> now;
    now.splice(now.end(), items_, items_.begin());
    lock.unlock();
    std::exception_ptr error;
    try {
      now.front().work();
    } catch (...) {
      error = std::current_exception();
    }
    Pending& pending = *now.front().pending;
    now.front() = {};
    pending.end(std::move(error));
    lock.lock();
    spare_.splice(spare_.end(), now);
    if (--left_ == 0) done_.notify_all();
  }
}

}  // namespace st
