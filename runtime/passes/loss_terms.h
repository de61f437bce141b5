// Applies the recipe's label smoothing and z-loss.
#pragma once

#include "ir/program.h"

namespace st {

/// Sets `label_smoothing` and `z_loss` on the cross-entropies of the loss whose own value is 0. Call before autodiff(), which copies them
/// into backward. Throws invalid_argument if either is not 0 and the loss has no cross-entropy.
void set_loss_terms(Program& program, double label_smoothing, double z_loss);

}  // namespace st
