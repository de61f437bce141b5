// Fusion: replaces a subgraph by one coarse kernel.
#pragma once

#include "ir/program.h"

namespace st {

/// matmul followed by the addition of a bias vector becomes `linear` if nothing else reads the product. The following ops, in this order,
/// join a product in a `fused_linear`:
///   1. an activation (the pre-activation stays an output if something reads it), or the multiplication with an activation's derivative
///   2. the addition of a residual
///   3. sums over the rows, which are bias gradients
/// The bias addition must be in the product's boundary scope, because every cut, recompute and gather boundary is one (traps.md, order of
/// sums 7): fusing it changes numerics by at most the one rounding between product and sum; the reference backend rounds the same. The
/// later stages round like the separate ops and change no bit, so they may be in any scope: a block adds the result of its mlp's last
/// product.
void fuse(Program& program);

}  // namespace st
