#include "stream_engine.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/float_mode.h"

namespace st {

std::shared_ptr<StreamEngine::Queue> StreamEngine::make_queue() {
  const std::lock_guard lock(mutex_);
  std::erase_if(queues_, [](const auto& queue) { return queue.expired(); });
  auto made = std::make_shared<Queue>();
  queues_.push_back(made);
  return made;
}

void StreamEngine::give(Queue& queue, std::function<void()> work, const void* name) {
  add(queue, {std::make_unique<Task>(Task{queue, std::move(work), name}), {}, {}});
}

void StreamEngine::record(Queue& queue, const std::shared_ptr<Point>& point) {
  const std::lock_guard lock(mutex_);
  add(queue, {std::make_unique<Task>(Task{.queue = queue, .work = {}, .records = point.get()}), point, {}, ++point->recorded_});
}

void StreamEngine::wait(Queue& queue, const std::shared_ptr<Point>& point) {
  const std::lock_guard lock(mutex_);
  add(queue, {std::make_unique<Task>(Task{.queue = queue, .work = {}, .awaits = point.get()}), {}, point, point->recorded_});
}

void StreamEngine::add(Queue& queue, Given given) {
  const std::lock_guard lock(mutex_);
  release(given.task.get());
  queue.given_.push_back(std::move(given));
  if (order_ == Order::eager) {
    while (!queue.given_.empty() && run_first(queue)) {
    }
  }
  if (order_ != Order::random) return;
  for (uint64_t runs = random_() % 3; runs > 0; --runs) {
    const auto any = queues_[random_() % queues_.size()].lock();
    if (any && !any->given_.empty()) run_first(*any);
  }
}

/// Returns whether it could: the event for which it waits has happened.
bool StreamEngine::run_first(Queue& queue) {
  if (const Given& first = queue.given_.front(); first.awaits && first.awaits->done_ < first.number) return false;
  Given first = std::move(queue.given_.front());
  queue.given_.pop_front();
  const FloatMode mode;  // noted by thread, and so by the host
  queue.identity_.become(Queue::run, first.task.release());
  if (first.records) first.records->done_ = first.number;
  return true;
}

/// As the queue's identity.
void StreamEngine::Queue::run(void* of) {
  acquire(of);
  const std::unique_ptr<Task> task(static_cast<Task*>(of));
  Queue& queue = task->queue;
  if (task->awaits != nullptr) acquire(task->awaits);
  try {
    if (task->work && !queue.error_) task->work();
  } catch (...) {
    queue.error_ = std::current_exception();
    queue.failed_ = task->name;
  }
  task->work = nullptr;
  if (task->records != nullptr) release(task->records);
  release(&queue);
}

/// No more than that needs.
void StreamEngine::run_to(const Point& until, int64_t number) {
  const auto records = [&](const std::weak_ptr<Queue>& queue) {
    const auto held = queue.lock();
    return held && std::ranges::any_of(held->given_, [&](const Given& given) { return given.records.get() == &until; });
  };
  const auto found = std::ranges::find_if(queues_, records);
  if (found == queues_.end()) throw std::logic_error("stream engine: a stream waits for an event that nothing records");
  for (const auto queue = found->lock(); until.done_ < number;)
    if (!run_first(*queue)) run_to(*queue->given_.front().awaits, queue->given_.front().number);
}

/// Until the point has this number.
void StreamEngine::run_others(const Point& until, int64_t number) {
  if (order_ == Order::late && until.done_ < number) return run_to(until, number);
  const size_t first = order_ == Order::random ? random_() % queues_.size() : 0;
  while (until.done_ < number) {
    bool any = false;
    for (size_t i = 0; i < queues_.size() && !any; ++i) {
      const auto queue = queues_[(first + i) % queues_.size()].lock();
      any = queue && !queue->given_.empty() && run_first(*queue);
    }
    if (!any) throw std::logic_error("stream engine: all streams wait for each other");
  }
}

void StreamEngine::finish(Queue& queue) {
  const std::lock_guard lock(mutex_);
  while (!queue.given_.empty())
    if (!run_first(queue)) run_others(*queue.given_.front().awaits, queue.given_.front().number);
  acquire(&queue);
  queue.told_ = std::exchange(queue.failed_, nullptr);
  if (const std::exception_ptr error = std::exchange(queue.error_, nullptr)) std::rethrow_exception(error);
}

void StreamEngine::wait(Point& point) {
  const std::lock_guard lock(mutex_);
  run_others(point, point.recorded_);
  acquire(&point);
}

}  // namespace st
