#include "recipe/fast_collectives.h"

#include "base/error.h"

namespace st {

bool has_fast_collectives(const Recipe& recipe) { return recipe.collectives == "fast" && mesh_of(recipe).ranks() > 1; }

void require_fast_collectives(const Recipe& recipe, bool has_own_memory, bool by_threads, std::string_view device) {
  if (!has_fast_collectives(recipe)) return;
  require(has_own_memory, Code::unsupported, "recipe: collectives fast needs NVIDIA devices, which NCCL connects, got device ", device,
          ", whose ranks exchange in the host's memory; use collectives ordered");
  require(!by_threads, Code::unsupported,
          "recipe: collectives fast needs ranks that are processes with a device each, which NCCL connects, got ranks that are threads on "
          "one device ",
          device, "; start a process for each device, or use collectives ordered");
}

}  // namespace st
