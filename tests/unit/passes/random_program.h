// Programs for tests of passes: a random graph of many ops with a loss, and the pass list of a training step over any model.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// A forward section with inputs "x" f32 [batch, 6] and "y" f32 [batch, 6], some parameters and an mse loss; `ops` random ops between. The
/// same for the same seed.
Program random_program(uint64_t seed, int ops);

/// dropout to fuse, as train/recipe.cpp lists them, with AdamW. `dropout` is the rate of sites that name none.
Program training_program(const Program& model, int64_t batch, int64_t micro_batches, double clip = 1, double dropout = 0);

}  // namespace st
