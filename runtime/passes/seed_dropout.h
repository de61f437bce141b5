// Gives every dropout site the run's seed.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// A model's dropout sites have numbers but no seed: the run's is set here. Call before autodiff(), which copies the sites into backward.
void seed_dropout(Program& program, int64_t seed);

}  // namespace st
