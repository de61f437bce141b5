// Chooses the micro-batch of a recipe with batch auto: the largest that fits in memory, found by planning.
#pragma once

#include "model/model.h"
#include "recipe/recipe.h"

namespace st {

/// Returns the recipe with batch and accumulate decided. Allocates nothing.
///   batch 0 (auto)           the largest divisor of global_batch whose planned step, together with an evaluation, fits in the
///                            context's free memory. accumulate keeps the global batch, so the step differs only in the order of
///                            its sums over micro-batches
///   batch and global_batch   accumulate follows unless given
/// Throws out_of_memory if not even one row fits; invalid_argument, with the numbers, if keys contradict each other or auto has no
/// global_batch to divide.
Recipe with_batch_decided(const Model& model, Recipe recipe, const PlanOptions& options = {});

}  // namespace st
