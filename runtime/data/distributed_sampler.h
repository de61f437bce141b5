// Which rows this rank reads next when ranks share an epoch's rows, for a host's own training loop.
#pragma once

#include <cstdint>
#include <span>

#include "data/stream.h"

namespace st {

/// Who gets the last rows of an epoch when they are fewer than all ranks together request.
enum class LastRows : int32_t {
  share = 1,  // each row once: they are divided evenly, so some ranks get fewer, or none
  drop = 2,   // no rank gets them
  join = 3,   // no end: the next epoch's first rows follow, as in a trainer's stream
};

struct SamplerOptions {
  int64_t rows = 0;
  int64_t rank = 0, size = 1;
  int64_t seed = 0;
  bool shuffle = true;
  LastRows last = LastRows::share;
};

/// A trainer's order: the items of epoch e are the permutation of (seed, e). The position is one number, the count of items taken by all
/// ranks, which does not depend on the number of ranks.
class DistributedSampler {
 public:
  /// Throws invalid_argument when an option is out of range.
  explicit DistributedSampler(const SamplerOptions& options);

  struct Taken {
    int64_t own = 0;  // rows of this rank
    int64_t all = 0;  // rows of all ranks; 0: the epoch has ended; the next call starts the next epoch
  };
  /// Writes the rank-th slice of the next size x `rows.size()` rows. All ranks must request the same number. Throws invalid_argument when
  /// an epoch has fewer rows than all ranks request and `last` is drop.
  Taken next(std::span<int64_t> rows);

  /// Moves to the first row of an epoch, 0 or later.
  void set_epoch(int64_t epoch);
  /// Items taken by all ranks since epoch 0: epoch * rows + items of the epoch. At an epoch's end it is the start of the next one.
  int64_t cursor() const { return cursor_; }
  void set_cursor(int64_t cursor);

 private:
  int64_t row(int64_t item) const { return options_.shuffle ? stream_[item] : item % options_.rows; }

  SamplerOptions options_;
  DataStream stream_;
  int64_t cursor_ = 0;
  bool is_at_end_ = false;  // at an epoch's end that next() has not reported yet
};

}  // namespace st
