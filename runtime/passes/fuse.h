// Fusion: a subgraph becomes one coarse kernel.
#pragma once

#include "ir/program.h"

namespace st {

/// matmul followed by the addition of a bias vector becomes `linear`, where nothing else reads the product. Both nodes must stand in the
/// same boundary scope, since every cut, recompute and gather boundary is one (traps.md, order of sums 7). Changes numerics by at most the
/// one rounding between product and sum; the reference backend rounds alike.
void fuse(Program& program);

}  // namespace st
