// Runs that tests plan.
#pragma once

#include <string>
#include <string_view>

#include "models/gpt.h"
#include "planner/rank_plan.h"

namespace st {

inline Recipe recipe(std::string_view json) {
  Recipe made;
  made.merge(json);
  return made;
}

inline PlannedRun run_of(const GptOptions& model, std::string_view json, const std::string& machine = "a100-80g") {
  return {.model = build_gpt(model), .recipe = recipe(json), .machine = machine_named(machine)};
}

inline const GptOptions kSmall{.layers = 4, .width = 64, .heads = 4, .context = 32, .vocabulary = 256};
inline const GptOptions k10B{.layers = 6, .width = 11776, .heads = 92, .context = 2048, .vocabulary = 51200};

}  // namespace st
