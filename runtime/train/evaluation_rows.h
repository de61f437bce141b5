// The rows that evaluations read: each once and in order. Those that the host may be late with are filled a batch ahead on a thread, so
// that who waits for them can be cancelled.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/memory_source.h"
#include "data/prefetch.h"
#include "exec/cancel_token.h"
#include "train/host_view.h"

namespace st {

class EvaluationRows {
 public:
  /// `batch` rows at a time, in memory of `memory`. Borrows the token. The destructor waits for fills that were left behind.
  EvaluationRows(int64_t batch, CancelToken& cancelled, std::shared_ptr<MemorySource> memory);

  /// `count` rows of each field, in the dataset's order, valid until the visit ends. The last batch has what is left.
  using Visit = std::function<void(std::span<const HostView> rows, int64_t count)>;
  /// Visits all rows of a dataset. Throws what the dataset and `visit` throw, cancelled when that came while rows were waited for, busy
  /// inside the dataset's own callback. Afterwards nothing of the dataset is kept; but a fill in progress, which a cancel or an error does
  /// not wait for, keeps dataset and buffers until it returns, and the next visit of the same dataset waits for it.
  void each(const std::shared_ptr<const Dataset>& data, const Visit& visit);

  /// Bytes of the buffers that fills which were left behind still write to.
  int64_t bytes() const;
  /// Ends the threads of fills that have returned.
  void trim();

 private:
  struct Reading {
    const Dataset* data;  // to tell it by
    std::unique_ptr<Prefetcher> rows;
  };

  void wait_for_late_fill_of(const Dataset& data);
  Prefetcher& begin(const std::shared_ptr<const Dataset>& data);
  const Batch& next(Prefetcher& rows);

  int64_t batch_;
  CancelToken& cancelled_;
  std::shared_ptr<MemorySource> memory_;
  std::vector<Reading> readings_;  // retired ones, and last the one that is visited
};

}  // namespace st
