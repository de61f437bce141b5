// Reverse-mode differentiation: gradients are ordinary values.
#pragma once

#include <span>

#include "ir/program.h"

namespace st {

/// Appends a backward section that stores d loss_sum * loss_seed / d parameter, times loss_scale if there is one, for each trainable
/// parameter in a slot "gradient.<parameter>". Does not change the loss. Call on a bound program, after scale_loss() and add_loss_scale(),
/// before accumulate().
/// - A parameter used in several boundary scopes (a tied weight) has one gradient per use, in graph order: "gradient.<p>",
///   "gradient.<p>.use1", ...; the update section adds them (traps.md, order of sums 3).
/// - Forward values that backward needs become stash slots.
/// - A parameter that the loss does not depend on gets no gradient.
void autodiff(Program& program);

/// A forward value and the slot with its gradient, of the same shape; another floating type is converted.
struct Seed {
  Value value;
  SlotId slot = -1;
};

/// The same from the sum of external gradients (see seed_outputs()). Does not read a seed whose value depends on no trainable parameter.
void autodiff(Program& program, std::span<const Seed> seeds);

}  // namespace st
