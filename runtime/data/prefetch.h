// Fills batches ahead of whoever computes with them, on a thread of its own, in a given order of rows.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <thread>

#include "base/memory_source.h"
#include "data/dataset.h"
#include "data/row_order.h"

namespace st {

/// One micro-batch. The memory belongs to the Prefetcher and is 64-byte aligned. The last one of an order that ends may have fewer rows
/// than the others, and after it come batches without any.
struct Batch {
  int64_t cursor = 0;       // of its step: items taken before it
  int64_t micro_batch = 0;  // k within the step
  std::span<const int64_t> rows;
  std::span<const FieldView> fields;  // in the dataset's order
};

/// How long to wait for rows: until `deadline` (os::seconds()), or until `cancelled`, which is asked every millisecond, since who cancels
/// may be a signal handler and can wake nobody. Null: never.
struct Patience {
  double deadline = std::numeric_limits<double>::infinity();
  std::function<bool()> cancelled;
};

class Prefetcher {
 public:
  /// Starts at the step that begins at `cursor`. `depth` batches are filled ahead (0: none, and no thread; next() fills). All buffers are
  /// allocated here, from `memory` (null: the system's pages): depth + 1 of them.
  Prefetcher(std::shared_ptr<const Dataset> data, const RowOrder& order, const MicroBatches& batches, int64_t cursor, int64_t depth,
             std::shared_ptr<MemorySource> memory = nullptr);
  /// Waits for a fill in progress, also when retired; but for one that this very call comes out of (a host's callback that destroys its
  /// trainer): then the thread ends by itself, and the dataset and the buffers with it.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// This rank's next micro-batch, valid until the next call; waits if it is not filled yet. An error of the dataset is thrown when its
  /// batch is due, after all before it, and again by every later call. Throws busy where the dataset's own callback waits for this thread.
  /// Called by one thread. Allocates nothing.
  const Batch& next() { return *next(Patience{}); }
  /// The same; null when the patience ended first, and then the batch is still the next one. Without a thread it is always filled.
  const Batch* next(const Patience& patience);

  /// Begins again with the step that begins at `cursor`, an error forgotten. Waits for nothing: what is being filled is filled and dropped,
  /// and the next is not before next() asks for it. By the thread that calls next().
  void rewind(int64_t cursor);

  /// Ends it without waiting: the dataset and the buffers are given up now, or, while a fill is in progress, by the thread as soon as that
  /// has returned. What may be called afterwards is is_over(), buffer_bytes() and the destructor. By the thread that calls next().
  void retire();
  /// Retired, and the dataset and the buffers are given up: the destructor has nothing to wait for.
  bool is_over() const { return !ahead_ && retired_.expired(); }

  int64_t buffer_bytes() const { return is_over() ? 0 : buffer_bytes_; }

 private:
  class Ahead;  // what the thread works on, and shares with us

  std::shared_ptr<Ahead> ahead_;  // null: retired
  std::weak_ptr<Ahead> retired_;  // the thread's alone
  int64_t buffer_bytes_;
  std::thread thread_;
};

}  // namespace st
