// Properties of every product: its values agree with double precision, and its bits are the same however it is run.
#pragma once

#include "product_run.h"

namespace st::fuzz {

/// Draws the seed's product, runs it in several ways and reports findings. False if the seed gives no valid problem, or the schedule is
/// refused.
bool play_product(const CpuSet& set, uint64_t seed);

}  // namespace st::fuzz
