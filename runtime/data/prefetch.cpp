#include "data/prefetch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/heap.h"
#include "base/os/loaded_library.h"
#include "base/os/machine.h"
#include "data/row_wait.h"

namespace st {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kMaxBytes = int64_t{1} << 48;  // of a field in a batch: larger than any memory, small enough that sums do not overflow

int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

class Prefetcher::Ahead {
 public:
  Ahead(std::shared_ptr<const Dataset> data, const RowOrder& order, const MicroBatches& batches, int64_t cursor, int64_t depth,
        std::shared_ptr<MemorySource> memory);

  /// The thread's main function: fills until stopped; after an error it waits for a rewind.
  void fill_ahead();
  /// Fills in the calling thread, when there is no prefetch thread.
  const Batch& fill_next();
  const Batch* wait_next(const Patience& patience);
  void rewind(int64_t cursor);
  /// Asks the thread to stop filling; returns whether a fill is in progress.
  bool stop();
  const CallbackRows* maker() const { return data_->maker(); }
  int64_t buffer_bytes() const { return static_cast<int64_t>(slots_.size()) * slot_bytes_; }

 private:
  struct Slot {
    std::vector<int64_t> rows;
    std::vector<FieldView> fields;
    Batch batch;
  };

  /// Fills micro-batch `number`, counted from the step at `cursor`.
  void fill(int64_t number, int64_t cursor);
  bool wait_until_known(std::unique_lock<std::mutex>& lock, const Patience& patience);
  bool wait_a_while(std::unique_lock<std::mutex>& lock, const Patience& patience);
  bool is_next_known() const { return filled_count_ > taken_count_ || error_; }
  /// The batch handed out last keeps its slot until the next one is requested.
  bool has_room() const { return filled_count_ - std::max<int64_t>(taken_count_ - 1, 0) < std::ssize(slots_); }
  Slot& slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  std::shared_ptr<const Dataset> data_;
  RowOrder order_;
  MicroBatches batches_;
  int64_t slot_bytes_ = 0;
  Memory memory_;
  std::vector<Slot> slots_;

  std::mutex mutex_;
  std::condition_variable filled_, taken_;
  // Under the mutex.
  int64_t cursor_;            // start position
  int64_t filled_count_ = 0;  // batches ready since the start
  int64_t taken_count_ = 0;   // batches handed out; the trainer still uses the last one
  std::exception_ptr error_;  // error of the batch after the filled ones
  int64_t rewinds_ = 0;       // a fill started before the last rewind is dropped
  bool resting_ = false;      // rewound, and no batch was requested since
  bool filling_ = false;      // the thread fills a batch, without holding the mutex
  bool stopping_ = false;
};

Prefetcher::Ahead::Ahead(std::shared_ptr<const Dataset> data, const RowOrder& order, const MicroBatches& batches, int64_t cursor,
                         int64_t depth, std::shared_ptr<MemorySource> memory)
    : data_(std::move(data)), order_(order), batches_(batches), cursor_(cursor) {
  check(depth >= 0 && depth <= 1024, "prefetch: the depth must be 0 to 1024 batches, got ", depth);
  check(cursor >= 0, "prefetch: the data cursor must be 0 or more, got ", cursor);
  check(batches.rows >= 1 && batches.per_step >= 1, "prefetch: micro-batches and their rows must be 1 or more, got ", batches.per_step,
        " micro-batches of ", batches.rows, " rows");
  check(batches.rank >= 0 && batches.rank < batches.ranks && batches.own() >= 1, "prefetch: rank ", batches.rank, " of ", batches.ranks,
        " has none of the ", batches.per_step, " micro-batches of a step");
  for (const auto& field : data_->fields()) {
    check(field.row_bytes() <= kMaxBytes / batches.rows, "prefetch: ", batches.rows, " rows of field \"", field.name, "\" (",
          field.row_bytes(), " bytes each) are too many for a batch");
    slot_bytes_ += aligned(batches.rows * field.row_bytes());
  }
  slots_.resize(static_cast<size_t>(depth + 1));
  memory_ = Memory(slot_bytes_ * (depth + 1), std::move(memory), MemoryRole::inputs);
  std::byte* at = memory_.data();
  for (auto& slot : slots_) {
    slot.rows.resize(static_cast<size_t>(batches.rows));
    for (const auto& field : data_->fields()) {
      slot.fields.push_back({at, batches.rows * field.row_bytes()});
      at += aligned(slot.fields.back().bytes);
    }
    slot.batch.fields = slot.fields;
  }
}

const Batch& Prefetcher::Ahead::fill_next() {
  if (error_) std::rethrow_exception(error_);
  try {
    fill(taken_count_, cursor_);
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  return slot_of(taken_count_++).batch;
}

const Batch* Prefetcher::Ahead::wait_next(const Patience& patience) {
  std::unique_lock lock(mutex_);
  if (std::exchange(resting_, false)) taken_.notify_one();
  if (!is_next_known() && !wait_until_known(lock, patience)) return nullptr;
  if (filled_count_ == taken_count_) std::rethrow_exception(error_);
  const Batch& batch = slot_of(taken_count_++).batch;
  lock.unlock();
  taken_.notify_one();
  return &batch;
}

/// False: the patience ended.
bool Prefetcher::Ahead::wait_until_known(std::unique_lock<std::mutex>& lock, const Patience& patience) {
  const RowWait wait(maker());
  while (!is_next_known()) {
    require(!wait.is_for_itself(), Code::busy,
            "data: deadlock: the callback for these rows waits for a callback that runs on this thread; use another dataset, or step "
            "outside it");
    if (!wait_a_while(lock, patience)) return false;
  }
  return true;
}

bool Prefetcher::Ahead::wait_a_while(std::unique_lock<std::mutex>& lock, const Patience& patience) {
  if (patience.cancelled && patience.cancelled()) return false;
  const double left = patience.deadline - os::seconds();
  if (left <= 0) return false;
  filled_.wait_for(lock, std::min(std::chrono::duration<double>(left), std::chrono::duration<double>(RowWait::kLook)));
  return true;
}

void Prefetcher::Ahead::rewind(int64_t cursor) {
  const std::lock_guard lock(mutex_);
  cursor_ = cursor;
  filled_count_ = taken_count_ = 0;
  error_ = nullptr;
  resting_ = true;
  ++rewinds_;
}

bool Prefetcher::Ahead::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  taken_.notify_all();
  return filling_;
}

void Prefetcher::Ahead::fill_ahead() {
  start_in_default_float_mode();
  std::unique_lock lock(mutex_);
  for (;;) {
    taken_.wait(lock, [&] { return stopping_ || (!resting_ && !error_ && has_room()); });
    if (stopping_) return;
    const int64_t number = filled_count_, cursor = cursor_, rewinds = rewinds_;
    filling_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      fill(number, cursor);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    filling_ = false;
    if (rewinds != rewinds_) continue;
    if (error) {
      error_ = std::move(error);
    } else {
      ++filled_count_;
    }
    filled_.notify_one();
  }
}

void Prefetcher::Ahead::fill(int64_t number, int64_t cursor) {
  Slot& slot = slot_of(number);
  const int64_t step = number / batches_.own();
  slot.batch.micro_batch = batches_.own(number % batches_.own());
  slot.batch.cursor = cursor + step * batches_.items_per_step();
  const int64_t count = order_.fill(batches_.first_item(slot.batch.cursor, slot.batch.micro_batch), slot.rows);
  slot.batch.rows = std::span(slot.rows).first(static_cast<size_t>(count));
  for (size_t f = 0; f < slot.fields.size(); ++f) slot.fields[f].bytes = count * data_->fields()[f].row_bytes();
  if (count > 0) data_->fill(slot.batch.rows, slot.fields);
}

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> data, const RowOrder& order, const MicroBatches& batches, int64_t cursor,
                       int64_t depth, std::shared_ptr<MemorySource> memory)
    : ahead_(std::make_shared<Ahead>(std::move(data), order, batches, cursor, depth, std::move(memory))),
      buffer_bytes_(ahead_->buffer_bytes()) {
  if (depth == 0) return;
  try {
    thread_ = std::thread([ahead = ahead_, heap = Heap::current()] {
      const HeapScope owners(heap);
      ahead->fill_ahead();
    });
  } catch (const std::system_error& error) {
    fail(Code::unavailable, text("prefetch: cannot start its thread (", error.what(), "); a depth of 0 needs none"));
  }
}

Prefetcher::~Prefetcher() {
  if (ahead_) ahead_->stop();
  if (!thread_.joinable()) return;
  const auto ahead = ahead_ ? ahead_ : retired_.lock();
  const RowWait wait(ahead ? ahead->maker() : nullptr);
  // The caller may be the prefetch thread itself (even while it releases the last reference to a dataset), or a callback for which that
  // thread waits: then joining would never end.
  if (thread_.get_id() == std::this_thread::get_id() || wait.is_for_itself()) {
    os::open_own_library();  // never closed: the moment when the thread leaves our code is unknown
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Prefetcher::retire() {
  if (!ahead_->stop() && thread_.joinable()) thread_.join();
  retired_ = ahead_;
  ahead_.reset();
}

const Batch* Prefetcher::next(const Patience& patience) {
  require(!RowWait(ahead_->maker()).is_for_itself(), Code::busy,
          "data: a step inside its own row callback would wait for itself; use another dataset, or step outside the callback");
  return thread_.joinable() ? ahead_->wait_next(patience) : &ahead_->fill_next();
}

void Prefetcher::rewind(int64_t cursor) { ahead_->rewind(cursor); }

}  // namespace st
