// Programs for tests of passes: a random graph of many ops with a loss, and a training step's pass list for any model.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// A forward section with inputs "x" f32 [batch, 6] and "y" f32 [batch, 6], some parameters, `ops` random ops and an mse loss. Depends only
/// on the arguments.
Program random_program(uint64_t seed, int ops);

/// The passes dropout to fuse in the order of recipe/recipe.cpp, with AdamW. `dropout`: the rate of sites without their own.
Program training_program(const Program& model, int64_t batch, int64_t micro_batches, double clip = 1, double dropout = 0);

}  // namespace st
