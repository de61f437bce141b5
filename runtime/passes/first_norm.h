// The gradient norm of a step's first micro-batch, which beside that of the whole step tells the gradient noise scale.
#pragma once

#include "ir/program.h"

namespace st {

/// At the end of backward, in the first micro-batch alone: report slots "first_norm" (f64, over all gradients as they lie in their slots,
/// the uses of a tied parameter added up) and "first_loss_count" (f64). Reads each gradient once more; the sums of a tied one are a
/// gradient's size of activations. Call after accumulate(), before clip().
void first_norm(Program& program);

}  // namespace st
