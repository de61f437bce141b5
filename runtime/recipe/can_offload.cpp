#include "recipe/can_offload.h"

#include "base/error.h"
#include "base/text.h"

namespace st {
bool moves_parameters(const Recipe& recipe, bool has_own_memory) {
  return has_own_memory && recipe.offload_folder.empty() && recipe.arenas_offloaded()[static_cast<size_t>(Arena::parameters)];
}

bool can_offload(const Recipe& recipe, bool has_own_memory) { return recipe.offload_folder.empty() || !has_own_memory; }

void require_offload(const Recipe& recipe, bool has_own_memory, std::string_view device) {
  require(can_offload(recipe, has_own_memory), Code::unsupported, "recipe: offload_folder is ", recipe.offload_folder, ", but device ",
          device, " has memory of its own, which cannot be in a file; leave offload_folder out, to offload to the host's memory");
}

void require_offload_budget(const Recipe& recipe, const MemoryLayout& memory) {
  const int64_t budget = recipe.offload_budget, bytes = memory.host_bytes();
  require(recipe.offload == "none" || budget == 0 || bytes <= budget, Code::out_of_memory, "recipe: offload ", recipe.offload, " needs ",
          text_of_bytes(bytes), " (", bytes, " bytes) of the host's memory for a rank, offload_budget is ", text_of_bytes(budget), " (",
          budget, " bytes); raise it to ", bytes,
          ", offload less, use an optimizer with less state (adamw-8bit) or zero on more ranks, or set offload to none");
}

bool threads_have_copies(const Mesh& mesh, int64_t zero, bool parameters_on_host) {
  if (mesh.tensor > 1) return true;
  return parameters_on_host && (mesh.stage > 1 || (zero == 3 && mesh.data > 1));
}

}  // namespace st
