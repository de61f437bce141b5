// Gradients in 16 bits: on the wire, and as the sum that clipping and the optimizer read. Sums are made in the gradient's own type.
#pragma once

#include "base/dtype.h"
#include "passes/gradient_buckets.h"

namespace st {

/// Both round to nearest even and change numerics, in the same way for every number of ranks and every ZeRO stage (traps.md, order of sums
/// 1 and 8). A value beyond the dtype's range becomes infinite, which clip() finds. With f32 they do nothing.

/// Rounds the gradient of each micro-batch before it is written or added to a sum. Does nothing with Reduce::step and several micro-batches
/// a rank: the sum of these is rounded once (exchange_gradients(), round_gradient_sums()). Call after accumulate(), before first_norm().
void round_gradients(Program& program, Reduce reduce, DType dtype);

/// Rounds the sum over all micro-batches, ranks and uses of a parameter, in the update section. Opens that section unless a pass for ranks
/// has (open_update). Call after data_parallel() or zero_shard(), before clip().
void round_gradient_sums(Program& program, DType dtype);

}  // namespace st
