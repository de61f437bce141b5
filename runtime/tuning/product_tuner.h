// Measures tiles or libraries for a plan's products before the first step, for the recipe keys `tune` and `gemm_library`.
#pragma once

#include "parts/context.h"
#include "passes/tune.h"

namespace st {

/// Calls the context's tuner once per distinct product, on these workers. Takes a minute at most for all products, most of them less than a
/// second each. Borrows both. The default remains for a backend without tunable products and for a product that gets no time.
TileChoice measured_tiles(Context& context, Workers& workers, const GemmContest& contest);

}  // namespace st
