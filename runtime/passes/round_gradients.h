// Gradients in 16 bits: on the wire, as the sum that clipping and the optimizer read, and where the sum is made.
//
// Sums are made in fp32 (`sums` f32), or in the type in which gradients are sent: then the gradients' slots have that type, each gradient
// of a micro-batch is rounded to it, with Reduce::step too, and so is every addition: of the micro-batches on a rank (accumulate), of what
// ranks send (reduce_scatter, whose slots have the type of its gradients), and of the uses of a tied parameter (add_use, first_norm). The
// order is that of traps.md, so with Reduce::micro the sums still depend on the micro-batches alone. A sum of 16 bits stops growing where a
// micro-batch's gradient is below half its last place: of bf16 2^-9 of the sum. DeepSpeed has this as data_types.grad_accum_dtype.
#pragma once

#include "base/dtype.h"
#include "passes/gradient_buckets.h"

namespace st {

/// Both round to nearest even and change numerics, in the same way for every number of ranks and every ZeRO stage (traps.md, order of sums
/// 1 and 8). A value beyond the dtype's range becomes infinite, which clip() finds. With f32 they do nothing.

/// Rounds the gradient of each micro-batch before it is written or added to a sum. Sums in fp32: does nothing with Reduce::step and several
/// micro-batches a rank, whose sum is rounded once (exchange_gradients(), round_gradient_sums()). `sums`: f32, or `dtype`. Call after
/// accumulate(), before first_norm().
void round_gradients(Program& program, Reduce reduce, DType dtype, DType sums = DType::f32);

/// Rounds the fp32 sum over all micro-batches, ranks and uses of a parameter, in the update section. Opens that section unless a pass for
/// ranks has (open_update). Call after data_parallel() or zero_shard(), before clip().
void round_gradient_sums(Program& program, DType dtype);

}  // namespace st
