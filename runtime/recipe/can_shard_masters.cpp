#include "recipe/can_shard_masters.h"

namespace st {

bool can_shard_masters(const Recipe& recipe, bool parameters_on_host) {
  return recipe.data_ranks() > 1 && (recipe.zero == 1 || recipe.zero == 2) && recipe.precision != "fp32" && !parameters_on_host;
}

}  // namespace st
