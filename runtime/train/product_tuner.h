// Tiles or libraries for the products of a plan, measured before the first step: what a recipe's `tune` and `gemm_library` ask for.
#pragma once

#include "passes/tune.h"
#include "train/context.h"

namespace st {

/// Asks the context's tuner once for each product that differs, on these workers; all together take a minute at most, and most of them a
/// part of a second. Borrows both. A backend without such products, or a product without the time: its default.
TileChoice measured_tiles(Context& context, Workers& workers, const GemmContest& contest);

}  // namespace st
