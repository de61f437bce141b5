#include "train/evaluation_rows.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "data/row_wait.h"

namespace st {
namespace {

constexpr int64_t kAhead = 1;  // batches

std::vector<HostView> views_of(const Dataset& data) {
  std::vector<HostView> views;
  for (const Field& field : data.fields()) {
    Shape shape{0};
    for (const int64_t dim : field.shape) shape.push_back(dim);
    views.push_back(plain_view(field.name, field.dtype, shape, nullptr));
  }
  return views;
}

}  // namespace

EvaluationRows::EvaluationRows(int64_t batch, CancelToken& cancelled, std::shared_ptr<MemorySource> memory)
    : batch_(batch), cancelled_(cancelled), memory_(std::move(memory)) {}

void EvaluationRows::each(const std::shared_ptr<const Dataset>& data, const Visit& visit) {
  require(!RowWait(data->maker()).is_for_itself(), Code::busy,
          "data: an evaluation inside the callback that makes its rows would deadlock; use other data, or evaluate outside the callback");
  wait_for_late_fill_of(*data);
  Prefetcher& rows = begin(data);
  try {
    std::vector<HostView> views = views_of(*data);
    for (int64_t left = data->rows(); left > 0;) {
      const Batch& batch = next(rows);
      for (size_t i = 0; i < views.size(); ++i) {
        views[i].shape[0] = std::ssize(batch.rows);
        views[i].data = batch.fields[i].data;
      }
      visit(views, std::ssize(batch.rows));
      left -= std::ssize(batch.rows);
    }
  } catch (...) {
    rows.retire();
    trim();
    throw;
  }
  readings_.pop_back();  // its thread rests: there is nothing to wait for
}

/// Keeps at most one unfinished fill per dataset, however often its evaluations are cancelled.
void EvaluationRows::wait_for_late_fill_of(const Dataset& data) {
  const RowWait wait(data.maker());
  for (;;) {
    trim();
    if (std::ranges::find(readings_, &data, &Reading::data) == readings_.end()) return;
    require(!wait.is_for_itself(), Code::busy,
            "data: a fill of an earlier evaluation waits for a callback on this thread; evaluate outside the callback");
    if (cancelled_.take()) fail(Code::cancelled, "evaluate: cancelled while waiting for a fill of an earlier evaluation");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // as Patience: a signal handler can wake nobody
  }
}

/// Rows that are there are copied by who uses them: a thread costs more than most batches of them. And where the system gives no thread,
/// rows come all the same.
Prefetcher& EvaluationRows::begin(const std::shared_ptr<const Dataset>& data) {
  readings_.reserve(readings_.size() + 1);  // what fails, fails before there is a fill to wait for
  const MicroBatches batches = {.rows = std::min(batch_, data->rows())};
  const auto ahead = [&](int64_t depth) {
    return std::make_unique<Prefetcher>(data, RowOrder::once(data->rows()), batches, 0, depth, memory_);
  };
  const auto made = [&] {
    try {
      return ahead(data->calls_host() ? kAhead : 0);
    } catch (const Error& error) {
      if (error.code() != Code::unavailable) throw;
      return ahead(0);
    }
  };
  readings_.push_back({data.get(), made()});
  return *readings_.back().rows;
}

const Batch& EvaluationRows::next(Prefetcher& rows) {
  const Batch* batch = rows.next({.cancelled = [this] { return cancelled_.is_set(); }});
  if (batch != nullptr) return *batch;
  cancelled_.take();
  fail(Code::cancelled, "evaluate: cancelled while waiting for rows");
}

int64_t EvaluationRows::bytes() const {
  int64_t sum = 0;
  for (const Reading& reading : readings_) sum += reading.rows->buffer_bytes();
  return sum;
}

void EvaluationRows::trim() {
  std::erase_if(readings_, [](const Reading& reading) { return reading.rows->is_over(); });
}

}  // namespace st
