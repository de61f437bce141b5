// Streams and events of a device that is not there: work runs as late as it may, at once, or in a random order that events allow.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "race_identity.h"

namespace st {

/// When work runs that was given to a stream:
///   eager   within the call, unless it waits for an event
///   late    when the host waits for it, or when that for which the host waits does, and nothing else
///   random  some time between, with other streams' work between its own
enum class Order { eager, late, random };
constexpr Order kOrders[] = {Order::eager, Order::late, Order::random};

/// All work runs on the thread of the call during which it runs. Safe to call from several threads.
class StreamEngine {
 public:
  explicit StreamEngine(Order order, uint64_t seed = 1) : order_(order), random_(seed) {}

  class Point {  // an event
    friend class StreamEngine;
    int64_t recorded_ = 0, done_ = 0;
  };

  class Queue {  // a stream
   public:
    /// What the first work that failed before the last finish() was given as; null: none did.
    const void* failed() const { return told_; }

   private:
    friend class StreamEngine;
    /// Belongs to the queue's identity once it is given, which frees it.
    struct Task {
      Queue& queue;
      std::function<void()> work;  // empty: records or waits
      const void* name = nullptr;
      Point *records = nullptr, *awaits = nullptr;
    };
    /// The engine's own notes of a task.
    struct Given {
      std::unique_ptr<Task> task;
      std::shared_ptr<Point> records, awaits;
      int64_t number = 0;  // of the record
      std::function<bool()> is_ready = {};
    };
    static void run(void* task);

    std::deque<Given> given_;
    std::exception_ptr error_;
    const void *failed_ = nullptr, *told_ = nullptr;
    RaceIdentity identity_;
  };

  std::shared_ptr<Queue> make_queue();
  void give(Queue& queue, std::function<void()> work, const void* name = nullptr);
  /// Work that may run once `is_ready` says so, which must not wait: another process or another stream's host decides. A host that waits
  /// for it has the engine to itself, so ranks that are threads poll by has_passed().
  void give_when(Queue& queue, std::function<bool()> is_ready, std::function<void()> work);
  void record(Queue& queue, const std::shared_ptr<Point>& point);
  void wait(Queue& queue, const std::shared_ptr<Point>& point);
  /// The host waits for all work of the queue; throws what its first failing work threw, after which the rest was left out.
  void finish(Queue& queue);
  /// The host waits for the point's last record.
  void wait(Point& point);
  /// Whether the point's last record has been reached, after running what it needs that is ready.
  bool has_passed(const Point& point);

 private:
  using Task = Queue::Task;
  using Given = Queue::Given;

  void add(Queue& queue, Given given);
  bool run_first(Queue& queue);
  std::shared_ptr<Queue> recorder_of(const Point& point);
  void run_to(const Point& until, int64_t number);
  bool try_to(const Point& until, int64_t number);
  void wait_for_first(Queue& queue);
  void run_others(const Point& until, int64_t number);

  const Order order_;
  std::recursive_mutex mutex_;
  std::mt19937_64 random_;
  int64_t pauses_ = 0;  // in waits for work that was not ready, since such work last ran
  std::vector<std::weak_ptr<Queue>> queues_;
};

}  // namespace st
