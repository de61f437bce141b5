// The seed of backward and the slots of the loss.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// Sets loss_seed to 1 / 2^ceil(log2(nominal rows of a step)), an exact power of two, so that gradients have the magnitude of a mean's. The
/// exact count, known only after the last micro-batch, enters once in step_factor (traps.md, order of sums 5). Stores the loss's sum and
/// count in the report slots "loss_sum" and "loss_count". Call before autodiff().
void scale_loss(Program& program, int64_t micro_batches);

/// Adds the control slot "loss_scale" (f64), which the host writes before each step. autodiff() multiplies every seed by it, so that small
/// gradients survive 16 bits; clip() divides it out in its factor without an extra rounding. Exact for a power of two while nothing
/// overflows or would underflow without it. Call before autodiff(), for fp16.
void add_loss_scale(Program& program);

/// Rows that the loss of a micro-batch of `batch` counts if none is ignored; for a language model, its tokens. The program may be symbolic.
int64_t rows_of_loss(const Program& program, int64_t batch);

}  // namespace st
