// Which rows a rank reads next, for the program's own training loop.
#pragma once

#include <scaletrain/distributed_sampler.h>

#include <algorithm>
#include <scaletrain/error.hpp>
#include <scaletrain/handle.hpp>
#include <scaletrain/view.hpp>
#include <utility>
#include <vector>

namespace scaletrain {

/// How an epoch ends when fewer rows are left than all ranks together would take.
enum class LastRows : int32_t {
  share = 1,  // each row once, divided evenly
  drop = 2,   // no rank reads them
  join = 3    // epochs have no end: the next one's first rows follow
};

/// The same on all ranks, except rank.
struct DistributedSamplerOptions {
  int32_t rank = 0, size = 1;
  int64_t seed = 0;
  bool shuffle = true;
  LastRows last = LastRows::share;
};

struct SampledRows {
  std::vector<int64_t> rows;  // of this rank
  int64_t all = 0;            // of all ranks together; 0: the epoch has ended
};

class DistributedSampler : public detail::Handle<st_distributed_sampler, st_distributed_sampler_destroy> {
 public:
  explicit DistributedSampler(int64_t rows, const DistributedSamplerOptions& options = DistributedSamplerOptions()) {
    st_distributed_sampler_options raw;
    check(st_distributed_sampler_options_init(&raw, sizeof raw));
    raw.shuffle = options.shuffle ? 1 : 0;
    raw.rank = options.rank;
    raw.size = options.size;
    raw.seed = options.seed;
    raw.last = static_cast<st_last_rows>(options.last);
    done(st_distributed_sampler_create(rows, &raw, out()));
  }

  /// The next `count` rows of this rank; fewer at an epoch's end, and none when it has ended, after which the next epoch begins.
  SampledRows next(int64_t count) const {
    SampledRows taken;
    taken.rows.resize(static_cast<size_t>(std::max<int64_t>(count, 1)));  // the library refuses less than 1
    int64_t own = 0;
    done(st_distributed_sampler_next(get(), count, taken.rows.data(), &own, &taken.all));
    taken.rows.resize(static_cast<size_t>(own));
    return taken;
  }
  /// The same into an i64 array, as many rows as fit; returns the number written and that of all ranks together.
  std::pair<int64_t, int64_t> next_to(const View& to) const {
    const st_view raw = detail::writable("DistributedSampler::next", to).raw();
    if (raw.dtype != ST_I64 || raw.rank != 1 || (raw.strides != nullptr && raw.strides[0] != 1))
      throw Error(Status::invalid_argument, "DistributedSampler::next: rows must be a one-dimensional i64 array without gaps");
    int64_t own = 0, all = 0;
    done(st_distributed_sampler_next(get(), raw.dims[0], static_cast<int64_t*>(raw.data), &own, &all));
    return {own, all};
  }

  /// Moves to the epoch's first row.
  void set_epoch(int64_t epoch) const { done(st_distributed_sampler_set_epoch(get(), epoch)); }
  /// Items that all ranks have taken since epoch 0, for a checkpoint. It does not depend on the number of ranks.
  int64_t cursor() const {
    int64_t cursor = 0;
    done(st_distributed_sampler_cursor(get(), &cursor));
    return cursor;
  }
  void set_cursor(int64_t cursor) const { done(st_distributed_sampler_set_cursor(get(), cursor)); }
};

}  // namespace scaletrain
