// ZeRO (Rajbhandari, Rasley, Ruwase and He 2020): each data rank keeps and updates only its own shards.
#pragma once

#include <vector>

#include "passes/gradient_buckets.h"
#include "passes/update.h"

namespace st {

/// Like data_parallel(), for program.rank of program.mesh.data ranks, and bitwise equal to it. Parameters are cut where the optimizer
/// allows it; the owners of its shards sum each gradient, which is not gathered. Slot::update makes clip(), update() and average()
/// work on this rank's shards, and update() gathers the parameters. Call after accumulate(), before clip().
///   stage 1     shards optimizer state; also gradients if each micro-batch's are reduced as they are made (Reduce::micro)
///   stage 2     also gradients, except those in which a rank accumulates its own micro-batches (Reduce::step)
///   stage 3     also parameters, including frozen ones; scopes gather them (gather_units.h), update() does not
///   sums_loss   false: each rank keeps the loss of its own micro-batches
///   dtype       of gradients on the wire; 16-bit: stage 1 shards gradients also with one micro-batch a rank (exchange_gradients)
void zero_shard(Program& program, int64_t stage, Reduce reduce, int64_t bucket_bytes, const ChooseOptimizer& choose, bool sums_loss = true,
                DType dtype = DType::f32);

/// For ranks that are threads: all of them share one copy of the master parameters (those of which products use working copies). Rank 0
/// owns them and the others borrow them (Slot::borrowed). Each rank writes its shards there, after the gather of the squares, and they are
/// not gathered. In stage 3 all parameters are shared this way, and rank 0 borrows its shards too. Returns the shared parameters, for
/// update(). Call after zero_shard().
std::vector<SlotId> share_masters(Program& program);

/// For ranks with separate memory, in stages 1 and 2: each rank keeps only its shards of the master parameters (as in share_masters()),
/// except those that some node also reads directly. Bitwise the same results. Call after zero_shard(). In a pipeline these are the masters
/// of the rank's stage, along the tensor axis those of its pieces.
/// - The working copies are whole; update() gathers them.
/// - Before a step with outdated copies (the first one, or after a change of the weights) each rank makes its shards of the copies and all
///   gather them; the executor does that (Copy::gathered).
/// - borrows_copies: another plan owns the copies, and this one borrows them.
void shard_masters(Program& program, bool borrows_copies);

}  // namespace st
