// Which ranks keep only their shards of the masters of 16-bit weights: one rule for trainers and for the planner.
#pragma once

#include "recipe/recipe.h"

namespace st {

/// Whether a host's ranks, whose models allocate parameters late, keep only their shards of the masters of 16-bit weights in a step on the
/// model's own loss.
bool can_shard_masters(const Recipe& recipe, bool parameters_on_host);

}  // namespace st
