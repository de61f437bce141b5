// Which rows this rank reads next, where ranks share the rows of an epoch: for training loops of a host's own.
#pragma once

#include <cstdint>
#include <span>

#include "data/stream.h"

namespace st {

/// What becomes of an epoch's last rows, where all ranks together would take more.
enum class LastRows : int32_t {
  share = 1,  // each row once: they are dealt out evenly, so some ranks have fewer, or none
  drop = 2,   // no rank gets them
  join = 3,   // there is no end: the next epoch's first rows follow, as in a trainer's stream
};

struct SamplerOptions {
  int64_t rows = 0;
  int64_t rank = 0, size = 1;
  int64_t seed = 0;
  bool shuffle = true;
  LastRows last = LastRows::share;
};

/// A trainer's order: the items of epoch e are the permutation of (seed, e), and where it stands is one number, the items that all ranks
/// together have taken, which says nothing of how many ranks there are.
class DistributedSampler {
 public:
  /// Throws invalid_argument where an option is out of its range.
  explicit DistributedSampler(const SamplerOptions& options);

  struct Taken {
    int64_t own = 0;  // rows of this rank
    int64_t all = 0;  // of all ranks together; 0: the epoch has ended, and the next call begins the next one
  };
  /// This rank's rows of the next size x `rows.size()`: the rank-th slice of them. All ranks ask for as many. Throws invalid_argument
  /// where an epoch has fewer than all ranks ask for, and those are dropped.
  Taken next(std::span<int64_t> rows);

  /// To the first row of an epoch, 0 or more.
  void set_epoch(int64_t epoch);
  /// Items that all ranks have taken, from epoch 0 on: epoch * rows and those of the epoch. At an epoch's end it stands at the next one.
  int64_t cursor() const { return cursor_; }
  void set_cursor(int64_t cursor);

 private:
  int64_t row(int64_t item) const { return options_.shuffle ? stream_[item] : item % options_.rows; }

  SamplerOptions options_;
  DataStream stream_;
  int64_t cursor_ = 0;
  bool is_at_end_ = false;  // of an epoch, of which next() has not told
};

}  // namespace st
