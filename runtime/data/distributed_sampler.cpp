#include "data/distributed_sampler.h"

#include <algorithm>

#include "base/error.h"

namespace st {

DistributedSampler::DistributedSampler(const SamplerOptions& options)
    : options_(options), stream_(std::max<int64_t>(options.rows, 1), static_cast<uint64_t>(options.seed)) {
  check(options.rows >= 1, "sampler: rows is ", options.rows, "; give 1 or more");
  check(options.size >= 1, "sampler: size is ", options.size, "; give the number of ranks, 1 or more");
  check(options.rank >= 0 && options.rank < options.size, "sampler: rank is ", options.rank, "; give 0 to ", options.size - 1);
  check(options.last >= LastRows::share && options.last <= LastRows::join, "sampler: last is ", static_cast<int32_t>(options.last),
        "; give 1 (share), 2 (drop) or 3 (join)");
}

DistributedSampler::Taken DistributedSampler::next(std::span<int64_t> rows) {
  const auto count = std::ssize(rows);
  int64_t all = 0;
  check(count >= 1, "sampler: count is ", count, "; give 1 or more rows");
  check(!__builtin_mul_overflow(count, options_.size, &all) && all <= INT64_MAX - cursor_, "sampler: ", count, " rows for each of ",
        options_.size, " ranks after item ", cursor_, " overflow 64 bits");
  int64_t begin = options_.rank * count, own = count;
  if (options_.last != LastRows::join) {
    check(options_.last == LastRows::share || all <= options_.rows, "sampler: an epoch has ", options_.rows, " rows, fewer than ", count,
          " for each of ", options_.size, " ranks, so all would be dropped; request fewer, or share the last rows");
    const int64_t left = is_at_end_ ? 0 : options_.rows - cursor_ % options_.rows;
    is_at_end_ = false;
    if (left < all && options_.last == LastRows::drop) cursor_ += left;
    if (left == 0 || (left < all && options_.last == LastRows::drop)) return {};
    if (left < all) {  // an even share; the first ranks get one row of the rest each
      all = left;
      begin = all / options_.size * options_.rank + std::min(all % options_.size, options_.rank);
      own = all / options_.size + (options_.rank < all % options_.size ? 1 : 0);
    }
  }
  for (int64_t i = 0; i < own; ++i) rows[static_cast<size_t>(i)] = row(cursor_ + begin + i);
  cursor_ += all;
  is_at_end_ = options_.last != LastRows::join && cursor_ % options_.rows == 0;
  return {.own = own, .all = all};
}

void DistributedSampler::set_epoch(int64_t epoch) {
  check(epoch >= 0 && epoch <= INT64_MAX / options_.rows, "sampler: epoch is ", epoch, "; give 0 to ", INT64_MAX / options_.rows);
  set_cursor(epoch * options_.rows);
}

void DistributedSampler::set_cursor(int64_t cursor) {
  check(cursor >= 0, "sampler: the cursor is ", cursor, "; give the number of items taken so far, 0 or more");
  cursor_ = cursor;
  is_at_end_ = false;
}

}  // namespace st
