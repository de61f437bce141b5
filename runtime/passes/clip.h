// Global norm, finite check and the factor that unscales and clips in one rounding.
#pragma once

#include "ir/program.h"

namespace st {

/// Opens the update section: adds the uses of tied parameters in graph order, takes the norm over all gradients (fp64, fixed order) and
/// stores in report slots "factor" (f32: what each gradient is multiplied with), "grad_norm" (f64, true) and "skipped" (bool: something is
/// not finite, so no optimizer runs). max_norm 0: no clipping, the norm is still reported. `unit` (none: loss_seed
/// times the loss's count) is a control slot with what one unit of the true gradient is in the gradient slots. Call after accumulate(),
/// before update().
void clip(Program& program, double max_norm, SlotId unit = -1);

}  // namespace st
