// Fills micro-batches ahead of the trainer, on a thread of its own, in the order of the stream.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/os.h"
#include "data/dataset.h"
#include "data/stream.h"

namespace st {

/// One micro-batch. The memory belongs to the Prefetcher and is 64-byte aligned.
struct Batch {
  int64_t cursor = 0;       // of its step: items taken before it
  int64_t micro_batch = 0;  // k within the step
  std::span<const int64_t> rows;
  std::span<const FieldView> fields;  // in the dataset's order
};

class Prefetcher {
 public:
  /// Starts at the step that begins at `cursor`. `depth` batches are filled ahead (0: none, and no thread; next() fills). All buffers are
  /// allocated here: depth + 1 of them. The dataset outlives it.
  Prefetcher(const Dataset& data, const DataStream& stream, const MicroBatches& batches, int64_t cursor, int64_t depth);
  /// Waits for a fill in progress.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// This rank's next micro-batch, valid until the next call; waits if it is not filled yet. An error of the dataset is thrown when its
  /// batch is due, after all before it, and again by every later call. Called by one thread. Allocates nothing.
  const Batch& next();

  int64_t buffer_bytes() const { return static_cast<int64_t>(slots_.size()) * slot_bytes_; }

 private:
  struct Slot {
    std::vector<int64_t> rows;
    std::vector<FieldView> fields;
    Batch batch;
  };

  void fill_ahead();
  /// Fills the `number`-th micro-batch since the start.
  void fill(int64_t number);
  Slot& slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  const Dataset& data_;
  DataStream stream_;
  MicroBatches batches_;
  int64_t cursor_;
  int64_t slot_bytes_ = 0;
  os::Pages memory_;
  std::vector<Slot> slots_;

  std::mutex mutex_;
  std::condition_variable filled_, taken_;
  // Under the mutex.
  int64_t filled_count_ = 0;  // batches ready since the start
  int64_t taken_count_ = 0;   // batches handed out; the last one is in the trainer's hands
  std::exception_ptr error_;  // of the batch after the filled ones
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace st
