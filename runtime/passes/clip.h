// Global gradient norm, finite check, and one factor that unscales and clips with a single rounding.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ir/program.h"

namespace st {

/// Parameter groups that are clipped by the norm of their own gradients instead of the global norm.
struct ClipGroups {
  std::vector<double> max_norms;                            // by group; 0: no clipping
  std::function<int(const Slot& parameter)> group_of = {};  // -1: in no group
};

/// Opens the update section and adds the uses of tied parameters, unless another pass has (open_update), computes the norm over all
/// gradients (fp64, fixed order) and writes report slots. Call after accumulate(), before update(). `at_a_time`: bytes of gradients that a
/// node of the norm reads, unless it reads one gradient; bitwise the same. Stages and tensor ranks may differ in it: the sums of all groups
/// are exchanged together.
///   "factor"           f32, the factor for each gradient; "factor.<group>" for a group
///   "grad_norm"        f64, of the true gradient; also written with max_norm 0, which disables clipping
///   "skipped"          bool: a gradient is not finite, so no optimizer runs
/// Gradient slots divided by step.gradient_unit are the true gradient; without that slot, by loss_seed times the loss's count. A loss scale
/// of the program is divided out in addition.
void clip(Program& program, double max_norm, const ClipGroups& groups = {}, int64_t at_a_time = std::numeric_limits<int64_t>::max());

/// Name of the slot with a group's factor; -1: the factor of all gradients.
std::string factor_slot(int group);

}  // namespace st
