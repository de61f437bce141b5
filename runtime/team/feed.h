// Reads a trainer's micro-batches from a dataset, in the order of the endless stream, ahead of use on a thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/host_view.h"
#include "data/prefetch.h"

namespace st {

class Feed {
 public:
  /// The micro-batches of one rank, from item `cursor`. Keeps the dataset alive. Batches are in memory of `memory`.
  Feed(std::shared_ptr<const Dataset> data, uint64_t seed, const MicroBatches& batches, int64_t cursor,
       std::shared_ptr<MemorySource> memory = nullptr);

  /// The next micro-batch of `batch` rows, valid until the next call; empty if the patience ended before it was ready.
  std::optional<std::span<const HostView>> next(const Patience& patience);
  /// Restarts at item `cursor`.
  void rewind(int64_t cursor) { prefetcher_.rewind(cursor); }
  int64_t buffer_bytes() const { return prefetcher_.buffer_bytes(); }

 private:
  std::shared_ptr<const Dataset> data_;
  Prefetcher prefetcher_;
  std::vector<HostView> views_;
};

}  // namespace st
