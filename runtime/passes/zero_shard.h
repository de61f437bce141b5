// ZeRO (Rajbhandari, Rasley, Ruwase and He 2020): data ranks of which each keeps and updates its own pieces alone.
#pragma once

#include <vector>

#include "passes/gradient_buckets.h"
#include "passes/update.h"

namespace st {

/// For program.rank of program.mesh.data ranks, as data_parallel(), which it leaves the bits of: pieces are cut where the optimizer allows
/// it, each gradient is summed by its pieces' owners and gathered by nobody; program.in_pieces tells clip(), update() and average() that
/// the state is of this rank's pieces, and update() gathers the parameters.
///   stage 1  optimizer state in pieces; gradients too where each micro-batch's are exchanged as they are made (Reduce::micro)
///   stage 2  gradients in pieces as well, but for those in which a rank adds up micro-batches of its own (Reduce::step)
///   stage 3  parameters as well, frozen ones too, which scopes gather for themselves (gather_units.h), and update() does not
/// `sums_loss`: false leaves each rank the loss of its own micro-batches. Call after accumulate(), before clip().
void zero_shard(Program& program, int64_t stage, Reduce reduce, int64_t bucket_bytes, const ChooseOptimizer& choose, bool sums_loss = true);

/// Where the ranks are threads: parameters that products take as working copies, in which the parameter is but their master, lie once for
/// all of them. Rank 0 has them and others are lent them (Slot::lent), each writes its pieces there, behind the gather of the squares, and
/// nobody gathers them. Gives back which they are, for update(). In stage 3 all parameters lie there, and rank 0 is lent its pieces, too.
/// Call after zero_shard().
std::vector<SlotId> share_masters(Program& program);

/// Where each rank has memory of its own, in stages 1 and 2: of the parameters that share_masters() is of, but for those that something
/// takes as they are too, each rank keeps its pieces alone. Their working copies are whole: update() gathers these. Before a step whose
/// copies are not right (a first one, or behind a change of the weights) each rank makes its pieces of them in the first micro-batch, all
/// together, and gathers them: that is the executor's to do (Executor::gather_copies). `lends_copies`: another plan has the copies, which
/// are lent to this one. The same bits. Call after zero_shard().
void keep_master_pieces(Program& program, bool lends_copies);

}  // namespace st
