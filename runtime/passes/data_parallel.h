// Data parallelism: every rank has all parameters and runs its share of a step's micro-batches.
#pragma once

#include "passes/gradient_buckets.h"

namespace st {

/// For program.rank of program.mesh.data ranks: cuts the parameters into shards (Slot::sums), reduces gradients and the loss over the
/// ranks (gradient_buckets.h), and opens the update section, which gathers the whole gradients of tied parameters.
///
/// State is bitwise that of one rank with the same micro-batches (Reduce::micro). Call after accumulate(), before clip(). sums_loss false:
/// each rank keeps the loss of its own micro-batches. dtype: of gradients on the wire (exchange_gradients).
void data_parallel(Program& program, Reduce reduce, int64_t bucket_bytes, bool sums_loss = true, DType dtype = DType::f32);

}  // namespace st
