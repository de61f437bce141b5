// Fills batches in a given order of rows on its own thread, ahead of the computation.
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

/// One micro-batch. The memory belongs to the Prefetcher and is 64-byte aligned. The last batch of a finite order may have fewer rows; the
/// batches after it have none.
struct Batch {
  int64_t cursor = 0;       // of its step: items taken before the step
  int64_t micro_batch = 0;  // k within the step
  std::span<const int64_t> rows;
  std::span<const FieldView> fields;  // in the dataset's order
};

/// How long to wait for rows: until `deadline` (os::seconds()) or until `cancelled` returns true. It is polled every millisecond, because a
/// signal handler, which can wake no thread, may cancel. Null: cannot be cancelled.
struct Patience {
  double deadline = std::numeric_limits<double>::infinity();
  std::function<bool()> cancelled;
};

class Prefetcher {
 public:
  /// Starts at the step at `cursor`. `depth` batches are filled ahead (0: none, without a thread; next() fills). Allocates all buffers,
  /// depth + 1, here from `memory` (null: the system's pages).
  Prefetcher(std::shared_ptr<const Dataset> data, const RowOrder& order, const MicroBatches& batches, int64_t cursor, int64_t depth,
             std::shared_ptr<MemorySource> memory = nullptr);
  /// Waits for a fill in progress, also after retire(). Exception: when called from inside that fill (a host's callback that destroys its
  /// trainer), the thread ends later by itself and then releases the dataset and the buffers.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// This rank's next micro-batch, valid until the next call; waits until it is filled. A dataset's error is thrown when its batch is due,
  /// after all batches before it, and by every later call. Throws busy when the dataset's callback waits for this thread. For one thread
  /// only. Allocates nothing.
  const Batch& next() { return *next(Patience{}); }
  /// The same; null when the patience ended first: the batch then stays the next one. Without a thread it always fills.
  const Batch* next(const Patience& patience);

  /// Restarts at the step at `cursor` and clears an error. Does not wait: a fill in progress is dropped when it ends, and the next fill
  /// starts at the next call of next(). Call from the thread that calls next().
  void rewind(int64_t cursor);

  /// Ends prefetching without waiting. The dataset and the buffers are released now or, during a fill, by the thread when the fill returns.
  /// Afterwards only is_over(), buffer_bytes() and the destructor may be called. Call from the thread that calls next().
  void retire();
  /// Retired, with dataset and buffers released: the destructor will not wait.
  bool is_over() const { return !ahead_ && retired_.expired(); }

  int64_t buffer_bytes() const { return is_over() ? 0 : buffer_bytes_; }

 private:
  class Ahead;  // state shared with the thread

  std::shared_ptr<Ahead> ahead_;  // null: retired
  std::weak_ptr<Ahead> retired_;  // after retire(): owned by the thread only
  int64_t buffer_bytes_;
  std::thread thread_;
};

}  // namespace st
