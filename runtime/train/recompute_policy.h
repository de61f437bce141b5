// The recompute pass as a recipe asks for it, `auto` included.
#pragma once

#include <functional>

#include "passes/recompute.h"
#include "train/recipe.h"

namespace st {

/// Makes the plan that is being made anew, to its end, with other options.
using Replan = std::function<Plan(const PlanOptions& options)>;

/// Recomputes options.recompute_scopes if given, else what recipe.recompute says. auto: as scopes_that_fit(), within
/// recipe.recompute_budget bytes of activations or, when that is 0, what options.memory leaves beside everything else. Throws
/// invalid_argument for scopes that are not there and for a budget that the policy does not ask for, out_of_memory when auto finds nothing
/// that fits.
RecomputeRecord recompute_by(Program& program, const Recipe& recipe, const PlanOptions& options, const Replan& replan);

}  // namespace st
