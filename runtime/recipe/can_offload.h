// Whether a trainer can offload tensors on a kind of device: one rule for trainers, and for the planner, which advises nothing that they
// refuse.
#pragma once

#include <string_view>

#include "recipe/recipe.h"

namespace st {

/// Whether a trainer runs the recipe's offload. `has_own_memory`: KernelNeeds has it.
/// - On a device without memory of its own: any, to a file or to the host's memory, where all is anyway.
/// - On others: any, to the host's memory.
bool can_offload(const Recipe& recipe, bool has_own_memory);
/// Throws unsupported, with the way out, if it does not. `device`: its name.
void require_offload(const Recipe& recipe, bool has_own_memory, std::string_view device);

/// Throws out_of_memory, with the bytes needed, the limit and the way out, if a rank's plan has more in the memory of a device's host than
/// offload_budget. With offload none it bounds only what the planner's search and advice
/// offload.
void require_offload_budget(const Recipe& recipe, const MemoryLayout& memory);

/// Whether it moves the model's parameters to the memory of the device's host. Then each rank has its own (not PlanOptions::shares_masters
/// or shards_masters).
bool moves_parameters(const Recipe& recipe, bool has_own_memory);
/// Whether ranks that are threads have parameters, or shards, of their own besides the model's: a stage and a rank of zero 3 read the
/// model's where they lie, but for those in the host's memory, of which each fetches its own.
bool threads_have_copies(const Mesh& mesh, int64_t zero, bool parameters_on_host);

}  // namespace st
