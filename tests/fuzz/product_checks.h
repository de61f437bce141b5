// What must hold of a product whatever it is: its values are those of double precision, and its bits are the same however it is run.
#pragma once

#include "product_run.h"

namespace st::fuzz {

/// Draws the seed's product, runs it in several ways and tells findings. False: the seed is no problem, or the schedule is refused.
bool play_product(const CpuSet& set, uint64_t seed);

}  // namespace st::fuzz
