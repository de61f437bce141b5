// Global norm, finite check and the factor that unscales and clips in one rounding.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace st {

/// Parameters that are clipped by the norm of their own group's gradients, in place of that of all.
struct ClipGroups {
  std::vector<double> max_norms;                            // of each group; 0: no clipping
  std::function<int(const Slot& parameter)> group_of = {};  // -1: in none of them
};

/// Opens the update section, where ranks' exchange has not: adds the uses of tied parameters in graph order, takes the norm over all
/// gradients (fp64, fixed order) and stores in report slots "factor" (f32: what each gradient is multiplied with), "grad_norm" (f64, true)
/// and "skipped" (bool: something is not finite, so no optimizer runs); a group's factor in "factor.<group>". max_norm 0: no clipping, the
/// norm is still reported. Gradients are divided by step.gradient_unit, or where the program has none by loss_seed times the loss's count;
/// and by the loss scale, where the program has one. Call after accumulate(), before update().
void clip(Program& program, double max_norm, const ClipGroups& groups = {});

/// Where the factor of a group is; of -1 that of all gradients.
std::string factor_slot(int group);

}  // namespace st
