#include "stream_engine.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
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

void StreamEngine::give_when(Queue& queue, std::function<bool()> is_ready, std::function<void()> work) {
  add(queue, {std::make_unique<Task>(Task{queue, std::move(work)}), {}, {}, 0, std::move(is_ready)});
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
  const Given& next = queue.given_.front();
  if ((next.awaits && next.awaits->done_ < next.number) || (next.is_ready && !next.is_ready())) return false;
  if (next.is_ready) pauses_ = 0;
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

std::shared_ptr<StreamEngine::Queue> StreamEngine::recorder_of(const Point& point) {
  for (const auto& queue : queues_)
    if (const auto held = queue.lock())
      if (std::ranges::any_of(held->given_, [&](const Given& given) { return given.records.get() == &point; })) return held;
  throw std::logic_error("stream engine: a stream waits for an event that nothing records");
}

/// No more than that needs.
void StreamEngine::run_to(const Point& until, int64_t number) {
  for (const auto queue = recorder_of(until); until.done_ < number;)
    if (!run_first(*queue)) wait_for_first(*queue);
}

/// The same, as far as all of it is ready.
bool StreamEngine::try_to(const Point& until, int64_t number) {
  if (until.done_ >= number) return true;
  for (const auto queue = recorder_of(until); until.done_ < number;) {
    if (run_first(*queue)) continue;
    const Given& first = queue->given_.front();
    if (!first.awaits || !try_to(*first.awaits, first.number)) return false;
  }
  return true;
}

/// Runs what the first work of a queue awaits, or waits a little until it is ready.
void StreamEngine::wait_for_first(Queue& queue) {
  const Given& first = queue.given_.front();
  if (first.awaits) return run_others(*first.awaits, first.number);
  constexpr int kPatience = 600'000;
  if (++pauses_ > kPatience) throw std::logic_error("stream engine: work has not become ready within a minute");
  std::this_thread::sleep_for(std::chrono::microseconds(100));
}

/// Until the point has this number.
void StreamEngine::run_others(const Point& until, int64_t number) {
  if (order_ == Order::late && until.done_ < number) return run_to(until, number);
  const size_t first = order_ == Order::random ? random_() % queues_.size() : 0;
  while (until.done_ < number) {
    bool any = false;
    std::shared_ptr<Queue> not_ready;
    for (size_t i = 0; i < queues_.size() && !any; ++i) {
      const auto queue = queues_[(first + i) % queues_.size()].lock();
      any = queue && !queue->given_.empty() && run_first(*queue);
      if (queue && !any && !queue->given_.empty() && queue->given_.front().is_ready) not_ready = queue;
    }
    if (any) continue;
    if (!not_ready) throw std::logic_error("stream engine: all streams wait for each other");
    wait_for_first(*not_ready);
  }
}

void StreamEngine::finish(Queue& queue) {
  const std::lock_guard lock(mutex_);
  while (!queue.given_.empty())
    if (!run_first(queue)) wait_for_first(queue);
  acquire(&queue);
  queue.told_ = std::exchange(queue.failed_, nullptr);
  if (const std::exception_ptr error = std::exchange(queue.error_, nullptr)) std::rethrow_exception(error);
}

void StreamEngine::wait(Point& point) {
  const std::lock_guard lock(mutex_);
  run_others(point, point.recorded_);
  acquire(&point);
}

bool StreamEngine::has_passed(const Point& point) {
  const std::lock_guard lock(mutex_);
  if (!try_to(point, point.recorded_)) return false;
  acquire(const_cast<Point*>(&point));
  return true;
}

}  // namespace st
