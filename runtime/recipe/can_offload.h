// What a trainer can offload on which kind of device: one rule for trainers, and for the planner, which advises nothing that they refuse.
#pragma once

#include <string_view>

#include "recipe/recipe.h"

namespace st {

/// Whether a trainer runs the recipe's offload. `has_own_memory`: KernelNeeds has it.
/// - On a device without memory of its own: any, to a file or to the host's memory, where all is anyway.
/// - On others: the optimizer's state, to the host's memory.
bool can_offload(const Recipe& recipe, bool has_own_memory);
/// Throws unsupported, with the way out, if it does not. `device`: its name.
void require_offload(const Recipe& recipe, bool has_own_memory, std::string_view device);

}  // namespace st
