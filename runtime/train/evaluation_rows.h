// The rows of an evaluation, each once and in order. Rows that the host may deliver late are filled a batch ahead on a thread, so that a
// wait for them can be cancelled.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/host_view.h"
#include "base/memory_source.h"
#include "data/prefetch.h"
#include "exec/cancel_token.h"

namespace st {

class EvaluationRows {
 public:
  /// Reads `batch` rows at a time, into memory of `memory`. Borrows the token. The destructor waits for abandoned fills.
  EvaluationRows(int64_t batch, CancelToken& cancelled, std::shared_ptr<MemorySource> memory);

  /// Receives `count` rows of each field, in the dataset's order, valid until it returns. The last batch has the remaining rows.
  using Visit = std::function<void(std::span<const HostView> rows, int64_t count)>;
  /// Visits all rows of a dataset. Throws what the dataset and `visit` throw, cancelled if a cancel came while it waited for rows, busy
  /// inside the dataset's own callback. Keeps nothing of the dataset afterwards, except that a cancel or an error does not wait for a fill
  /// in progress: that fill keeps dataset and buffers until it returns, and the next visit of the same dataset waits for it.
  void each(const std::shared_ptr<const Dataset>& data, const Visit& visit);

  /// Bytes of the buffers that abandoned fills still write to.
  int64_t bytes() const;
  /// Joins the threads of fills that have returned.
  void trim();

 private:
  struct Reading {
    const Dataset* data;  // identifies the dataset
    std::unique_ptr<Prefetcher> rows;
  };

  void wait_for_late_fill_of(const Dataset& data);
  Prefetcher& begin(const std::shared_ptr<const Dataset>& data);
  const Batch& next(Prefetcher& rows);

  int64_t batch_;
  CancelToken& cancelled_;
  std::shared_ptr<MemorySource> memory_;
  std::vector<Reading> readings_;  // abandoned ones; the current one is last
};

}  // namespace st
