// From the recipe's words to the optimizer's op: the row of optimizers.def and its attributes.
#pragma once

#include "passes/update.h"
#include "train/recipe.h"

namespace st {

OptimizerChoice optimizer_choice(const Recipe& recipe);

}  // namespace st
