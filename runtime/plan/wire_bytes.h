// The payload that a plan's rank sends, known before anything runs: the bytes that a transport counts (traps.md, T6).
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace st {

/// Bytes of elements that the plan's rank sends in a step, without headers, by op. Fast collectives are counted as rings, which send what
/// the direct exchange sends; NCCL may choose another algorithm.
struct WireBytes {
  int64_t reduce_scatter = 0, all_gather = 0, rank_sums = 0, gather_squares = 0, messages = 0;  // messages: send
  int64_t tensor = 0;                                                                           // tensor_gather, tensor_scatter, tensor_sum
  int64_t collectives = 0;                                                                      // in which the rank takes part
  int64_t copies = 0;  // extra bytes, not in all(), of a step that first rebuilds the working copies (shard_masters)
  int64_t all() const { return reduce_scatter + all_gather + rank_sums + gather_squares + messages + tensor; }
};

/// Bytes of elements that the plan's rank sends for one instruction in a step of so many full micro-batches over all ranks; for a copy that
/// is made on request (Copy::gathered), those of a step that makes it.
int64_t sent_bytes(const Plan& plan, const Instruction& at, int64_t micro_batches);

/// Counts a step of `micro_batches` full micro-batches over all ranks. In a round in which this rank has rows, a reduce_scatter sends the
/// gradient shards that other ranks own. A gather sends this rank's shard once to every other rank. The comparison of replica_check is not
/// part of the plan.
WireBytes wire_bytes(const Plan& plan, int64_t micro_batches);

}  // namespace st
