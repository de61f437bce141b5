// Whether a trainer can offload tensors on a kind of device: one rule for trainers, and for the planner, which advises nothing that they
// refuse.
#pragma once

#include <string>
#include <string_view>

#include "recipe/recipe.h"

namespace st {

/// Whether a trainer runs the recipe's offload. `has_own_memory`: KernelNeeds has it.
/// - On a device without memory of its own: any, to a file or to the host's memory, where all is anyway.
/// - On others, to the host's memory: the optimizer's state; parameters and gradients without stages or tensor ranks.
bool can_offload(const Recipe& recipe, bool has_own_memory);
/// Throws unsupported, with the way out, if it does not. `device`: its name.
void require_offload(const Recipe& recipe, bool has_own_memory, std::string_view device);

/// Whether it moves the model's parameters to the memory of the device's host. Then each rank has its own (not PlanOptions::shares_masters
/// or shards_masters).
bool moves_parameters(const Recipe& recipe, bool has_own_memory);
/// Throws unsupported, with `because` and `way_out`, if the recipe's ranks cannot train a model with its parameters there.
void require_data_ranks_only(const Recipe& recipe, const std::string& because, std::string_view way_out);

}  // namespace st
