// Runs the recompute pass that a recipe asks for, including `auto`.
#pragma once

#include <functional>

#include "passes/recompute.h"
#include "recipe/recipe.h"

namespace st {

/// The memory of a plan that continues from `program`, the one given to recompute_by(), for another data rank, stage or choice of scopes.
using Replan = std::function<MemoryLayout(Program program, const PlanOptions& options)>;

/// Recomputes options.recompute_scopes if given, else the scopes of recipe.recompute. auto: like scopes_that_fit(), within
/// recipe.recompute_budget bytes of activations or, if that is 0, what options.memory leaves after everything else; of a pipeline, on each
/// stage, and each stage's plan has the scopes of all. Throws invalid_argument
/// for scopes that do not exist and for a budget without auto, out_of_memory if auto finds nothing that fits.
RecomputeRecord recompute_by(Program& program, const Recipe& recipe, const PlanOptions& options, const Replan& replan);

}  // namespace st
