#include "stream_engine.h"

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
  auto task = std::make_unique<Task>();
  task->work = std::move(work);
  task->name = name;
  add(queue, std::move(task));
}

void StreamEngine::record(Queue& queue, const std::shared_ptr<Point>& point) {
  const std::lock_guard lock(mutex_);
  auto task = std::make_unique<Task>();
  task->records = point;
  task->number = ++point->recorded_;
  add(queue, std::move(task));
}

void StreamEngine::wait(Queue& queue, const std::shared_ptr<Point>& point) {
  const std::lock_guard lock(mutex_);
  auto task = std::make_unique<Task>();
  task->awaits = point;
  task->number = point->recorded_;
  add(queue, std::move(task));
}

void StreamEngine::add(Queue& queue, std::unique_ptr<Task> task) {
  const std::lock_guard lock(mutex_);
  release(task.get());
  queue.tasks_.push_back(std::move(task));
  if (order_ == Order::eager) {
    while (!queue.tasks_.empty() && run_first(queue)) {
    }
  }
  if (order_ != Order::random) return;
  for (uint64_t runs = random_() % 3; runs > 0; --runs) {
    const auto any = queues_[random_() % queues_.size()].lock();
    if (any && !any->tasks_.empty()) run_first(*any);
  }
}

/// Returns whether it could: the event for which it waits has happened.
bool StreamEngine::run_first(Queue& queue) {
  if (const Task& first = *queue.tasks_.front(); first.awaits && first.awaits->done_ < first.number) return false;
  const std::unique_ptr<Task> task = std::move(queue.tasks_.front());
  queue.tasks_.pop_front();
  queue.identity_.become([&] {
    acquire(task.get());
    if (task->awaits) acquire(task->awaits.get());
    try {
      const FloatMode mode;
      if (task->work && !queue.error_) task->work();
    } catch (...) {
      queue.error_ = std::current_exception();
      queue.failed_ = task->name;
    }
    if (task->records) release(task->records.get());
    release(&queue);
  });
  if (task->records) task->records->done_ = task->number;
  return true;
}

/// Until the point has this number.
void StreamEngine::run_others(const Point& until, int64_t number) {
  const size_t first = order_ == Order::random ? random_() % queues_.size() : 0;
  while (until.done_ < number) {
    bool any = false;
    for (size_t i = 0; i < queues_.size() && !any; ++i) {
      const auto queue = queues_[(first + i) % queues_.size()].lock();
      any = queue && !queue->tasks_.empty() && run_first(*queue);
    }
    if (!any) throw std::logic_error("stream engine: all streams wait for each other");
  }
}

void StreamEngine::finish(Queue& queue) {
  const std::lock_guard lock(mutex_);
  while (!queue.tasks_.empty())
    if (!run_first(queue)) run_others(*queue.tasks_.front()->awaits, queue.tasks_.front()->number);
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
