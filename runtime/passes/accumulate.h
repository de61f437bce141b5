// Gradient accumulation over the micro-batches of a step.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// The first micro-batch writes each gradient and the loss's sum and count, the others add, each finished piece in the order of the
/// micro-batches (traps.md, order of sums 1 and 2). With one micro-batch the program stays as it is. Call after autodiff(), before clip().
void accumulate(Program& program, int64_t micro_batches);

}  // namespace st
