// Data parallelism: every rank has all parameters, and sees other micro-batches of a step.
#pragma once

#include "passes/gradient_buckets.h"

namespace st {

/// For program.rank of program.mesh.data ranks: cuts the parameters into the ranks' pieces (program.cuts), exchanges gradients and the loss
/// (gradient_buckets.h), and opens the update section, which gathers each gradient whole.
///
/// Leaves the state bitwise that of one rank with the same micro-batches (Reduce::micro). Call after accumulate(), before clip().
void data_parallel(Program& program, Reduce reduce, int64_t bucket_bytes);

}  // namespace st
