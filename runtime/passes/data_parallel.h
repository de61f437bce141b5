// Data parallelism: every rank has all parameters, and sees other micro-batches of a step.
#pragma once

#include "passes/gradient_buckets.h"

namespace st {

/// For program.rank of program.mesh.data ranks: cuts the parameters into the ranks' pieces (program.cuts), exchanges gradients and the loss
/// (gradient_buckets.h), and opens the update section, which gathers the gradients of tied parameters whole.
///
/// Leaves the state bitwise that of one rank with the same micro-batches (Reduce::micro). Call after accumulate(), before clip().
/// `sums_loss`: false leaves each rank the loss of its own micro-batches.
void data_parallel(Program& program, Reduce reduce, int64_t bucket_bytes, bool sums_loss = true);

}  // namespace st
