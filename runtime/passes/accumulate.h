// Gradient accumulation over the micro-batches of a step.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// The first micro-batch writes each gradient and the loss's sum and count; later ones add their complete gradients in micro-batch order
/// (traps.md, order of sums 1 and 2), in the type of the slots (round_gradients.h). Does nothing with one micro-batch. Call after
/// autodiff(), before clip().
void accumulate(Program& program, int64_t micro_batches);

}  // namespace st
