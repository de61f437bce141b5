// Dropout sites: the recipe's rate and seed before training, none of them in inference.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/program.h"

namespace st {

/// A model's dropout sites have numbers, but no seed and mostly no rate: sites of rate 0 take `rate`, all take `seed`; what is still of
/// rate 0 is taken out. Call before autodiff(), which copies the sites into backward.
void set_dropout(Program& program, double rate, int64_t seed);

/// Takes the sites out of forward for which `is_idle` holds, and their counters with the last.
void remove_dropout(Program& program, const std::function<bool(const Node&)>& is_idle);

}  // namespace st
