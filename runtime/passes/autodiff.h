// Reverse-mode differentiation: gradients are ordinary values.
#pragma once

#include <span>

#include "ir/program.h"

namespace st {

/// Appends a backward section: d loss_sum * loss_seed / d each trainable parameter, stored in slots "gradient.<parameter>"; where there is
/// a loss_scale, times it. A parameter used in several boundary scopes (a tied weight) has a gradient for each use, in graph order:
/// "gradient.<p>", "gradient.<p>.use1", ...; the update section adds them (traps.md, order of sums 3). What backward needs of forward
/// becomes a stash slot. A parameter that the loss does not depend on gets no gradient. Call on a bound program, after scale_loss() and
/// add_loss_scale(), before accumulate(). Leaves the loss unchanged.
void autodiff(Program& program);

/// A forward value and the slot that its gradient is read from, of its shape; a slot of another floating type is converted.
struct Seed {
  Value value;
  SlotId slot = -1;
};

/// The same from gradients that come from outside, added up: seed_outputs() makes them. A seed that no trainable parameter reaches is not
/// read.
void autodiff(Program& program, std::span<const Seed> seeds);

}  // namespace st
