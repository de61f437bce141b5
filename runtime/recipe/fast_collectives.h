// Whether ranks can use the collectives of their devices' network (recipe key collectives): one rule for trainers and the planner.
#pragma once

#include <string_view>

#include "recipe/recipe.h"

namespace st {

/// Whether the recipe's ranks use them; one rank has none.
bool has_fast_collectives(const Recipe& recipe);

/// Throws unsupported, with the way out, if they are asked for where no network connects devices: `by_threads`, the ranks are threads of
/// one process, or `device`, which has no memory of its own (KernelNeeds::has_own_memory).
void require_fast_collectives(const Recipe& recipe, bool has_own_memory, bool by_threads, std::string_view device);

}  // namespace st
