// The micro-batch of a recipe that leaves it open: the largest that fits in memory, found by planning.
#pragma once

#include "train/model.h"
#include "train/recipe.h"

namespace st {

/// The recipe with its batch and accumulate decided.
///
/// batch 0, which is auto: of the divisors of global_batch the largest whose planned step, evaluation beside it, fits what the context has
/// left; accumulate then keeps the global batch, so that the step is the same but for the order of its sums over micro-batches. Nothing is
/// allocated. Throws out_of_memory when not even one row fits.
/// batch given, and global_batch: accumulate follows when it is not given.
/// Throws invalid_argument, with the numbers, where the keys contradict each other or auto has no global_batch to divide.
Recipe with_batch_decided(const Model& model, Recipe recipe, const PlanOptions& options = {});

}  // namespace st
