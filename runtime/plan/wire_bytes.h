// What a plan's rank puts on the wire: the elements that a transport counts (traps.md, T6), known before anything runs.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace st {

/// Of elements that the plan's own rank sends in a step, without headers, by op.
struct WireBytes {
  int64_t reduce_scatter = 0, all_gather = 0, rank_sums = 0, gather_squares = 0;
  int64_t collectives = 0;  // that it takes part in
  int64_t copies = 0;       // and beside all of these in a step that begins with making working copies anew (keep_master_pieces)
  int64_t all() const { return reduce_scatter + all_gather + rank_sums + gather_squares; }
};

/// Of a step of so many whole micro-batches of all ranks together. A reduce_scatter sends what others own of the gradients of a rank that
/// has rows in that round; whatever is gathered goes to each other rank once. What ranks compare beside a step (replica_check) is not of
/// the plan.
WireBytes wire_bytes(const Plan& plan, int64_t micro_batches);

}  // namespace st
