// Fusion: a subgraph becomes one coarse kernel.
#pragma once

#include "ir/program.h"

namespace st {

/// matmul followed by the addition of a bias vector becomes `linear`, where nothing else reads the product. What follows the product then,
/// in this order, joins it in a `fused_linear`: an activation (the pre-activation stays an output where something reads it) or the
/// multiplication with an activation's derivative; the addition of a residual; sums over the rows, which are bias gradients.
///
/// The bias must stand in the product's boundary scope, since every cut, recompute and gather boundary is one (traps.md, order of sums 7):
/// it changes numerics by at most the one rounding between product and sum; the reference backend rounds alike. The stages behind it round
/// as the ops do and change no bit, fused or not, so they may stand in any scope: a block adds what its mlp's last product gives.
void fuse(Program& program);

}  // namespace st
