#include "recipe/can_offload.h"

#include "base/error.h"

namespace st {
namespace {

bool can_go_to_a_file(const Recipe& recipe, bool has_own_memory) { return recipe.offload_folder.empty() || !has_own_memory; }

bool can_leave_the_device(const Recipe& recipe, bool has_own_memory) {
  return !has_own_memory || recipe.offload == "none" || recipe.offload == "optimizer";
}

}  // namespace

bool can_offload(const Recipe& recipe, bool has_own_memory) {
  return can_go_to_a_file(recipe, has_own_memory) && can_leave_the_device(recipe, has_own_memory);
}

void require_offload(const Recipe& recipe, bool has_own_memory, std::string_view device) {
  require(can_go_to_a_file(recipe, has_own_memory), Code::unsupported, "recipe: offload_folder is ", recipe.offload_folder, ", but device ",
          device, " has memory of its own, which cannot be in a file; leave offload_folder out, to offload to the host's memory");
  require(can_leave_the_device(recipe, has_own_memory), Code::unsupported, "recipe: offload ", recipe.offload, " cannot be run on device ",
          device, ", which has memory of its own; use offload optimizer, or zero 3 on more ranks");
}

}  // namespace st
