// Label smoothing and z-loss of a training, from the recipe.
#pragma once

#include "ir/program.h"

namespace st {

/// The cross-entropies that the loss is made of take `label_smoothing` and `z_loss` where their own is 0. Call before autodiff(), which
/// copies them into backward. Throws invalid_argument when one is wanted and the loss is made of no cross-entropy.
void set_loss_terms(Program& program, double label_smoothing, double z_loss);

}  // namespace st
