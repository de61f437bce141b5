#include "recipe/can_offload.h"

#include "base/error.h"
#include "base/text.h"

namespace st {
namespace {

bool can_go_to_a_file(const Recipe& recipe, bool has_own_memory) { return recipe.offload_folder.empty() || !has_own_memory; }

bool has_data_ranks_only(const Recipe& recipe) { return recipe.stages == 1 && recipe.tensor == 1; }

}  // namespace

bool moves_parameters(const Recipe& recipe, bool has_own_memory) {
  return has_own_memory && recipe.offload_folder.empty() && recipe.arenas_offloaded()[static_cast<size_t>(Arena::parameters)];
}

bool can_offload(const Recipe& recipe, bool has_own_memory) {
  if (!has_own_memory || recipe.offload == "none") return can_go_to_a_file(recipe, has_own_memory);
  if (!can_go_to_a_file(recipe, has_own_memory)) return false;
  return recipe.offload == "optimizer" || has_data_ranks_only(recipe);
}

void require_offload(const Recipe& recipe, bool has_own_memory, std::string_view device) {
  if (can_offload(recipe, has_own_memory)) return;
  require(can_go_to_a_file(recipe, has_own_memory), Code::unsupported, "recipe: offload_folder is ", recipe.offload_folder, ", but device ",
          device, " has memory of its own, which cannot be in a file; leave offload_folder out, to offload to the host's memory");
  require_data_ranks_only(recipe, text("offload ", recipe.offload, " on device ", device, ", which has memory of its own,"),
                          "use zero 3 on as many ranks, or offload optimizer");
}

void require_data_ranks_only(const Recipe& recipe, const std::string& because, std::string_view way_out) {
  require(has_data_ranks_only(recipe), Code::unsupported, "recipe: ", because, " needs stages 1 and tensor 1, got stages ", recipe.stages,
          " and tensor ", recipe.tensor, "; ", way_out);
}

}  // namespace st
