// The seed of backward and the loss's own slots.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// Sets loss_seed to 1 / 2^ceil(log2(nominal rows of a step)), so that gradients have the size of a mean's while the exact count, known
/// only after the last micro-batch, enters once in step_factor (traps.md, order of sums 5). Stores the loss's sum and count in the report
/// slots "loss_sum" and "loss_count". Numerics: a power of two, exact. Call before autodiff().
void scale_loss(Program& program, int64_t micro_batches);

/// Adds the control slot "loss_scale" (f64), which the host writes before each step: autodiff() multiplies every seed with it, so that
/// small gradients survive 16 bits, and clip() takes it out in the factor, in the one rounding that is there anyway. Exact for a power of
/// two while nothing overflows or, without it, underflows. Call before autodiff(), for fp16.
void add_loss_scale(Program& program);

/// Rows that the loss of one micro-batch counts when none is ignored: tokens of a language model.
int64_t rows_of_loss(const Program& program);

}  // namespace st
