// The arithmetic of a warp's product of fragments, compiled as the engine is: without sanitizers, and optimized in every build.
#pragma once

#include "grid_engine.h"

namespace st::simulated {

/// Adds the products to the sums of each of kLanes lanes.
void multiply_fragments(const Fragments* const* lanes);

}  // namespace st::simulated
