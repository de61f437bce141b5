#include "train/recompute_policy.h"

#include <algorithm>

#include "base/error.h"
#include "passes/recompute_choice.h"
#include "passes/recompute_scopes.h"

namespace st {
namespace {

int64_t activation_bytes(const MemoryLayout& memory) {
  return memory.of(Arena::activations) + memory.of(Arena::stash) + memory.of(Arena::workspace);
}

int64_t other_bytes(const MemoryLayout& memory) { return memory.beside_parameters() - activation_bytes(memory); }

MemoryLayout memory_with(std::span<const RegionId> scopes, const PlanOptions& options, const Replan& replan) {
  const std::vector<RegionId> chosen(scopes.begin(), scopes.end());
  PlanOptions asked = options;
  asked.print = {};
  asked.skip.emplace_back("pack_weights");  // where packed weights do not fit, a step does without
  asked.recompute_scopes = &chosen;
  return replan(asked).memory;
}

}  // namespace

RecomputeRecord recompute_by(Program& program, const Recipe& recipe, const PlanOptions& options, const Replan& replan) {
  if (options.recompute_scopes != nullptr) return recompute(program, *options.recompute_scopes);
  check(recipe.recompute == "auto" || recipe.recompute_budget == 0, "recipe: recompute_budget is ", recipe.recompute_budget,
        ", which needs recompute auto, but recompute is ", recipe.recompute, "; set recompute to auto or leave the budget out");
  if (recipe.recompute != "auto") return recompute(program, scopes_to_recompute(program, recipe.recompute));
  int64_t budget = recipe.recompute_budget;
  if (budget == 0) {
    if (options.memory == PlanOptions::kUnlimited) return recompute(program, {});
    budget = std::max<int64_t>(0, options.memory - other_bytes(memory_with({}, options, replan)));
  }
  const auto activations = [&](std::span<const RegionId> scopes) { return activation_bytes(memory_with(scopes, options, replan)); };
  const auto on_all = [&](std::span<const RegionId> scopes) {
    PlanOptions of = options;
    int64_t most = 0;
    for (of.rank = 0; of.rank < recipe.ranks; ++of.rank) most = std::max(most, activation_bytes(memory_with(scopes, of, replan)));
    return most;
  };
  return recompute(program, scopes_that_fit(program, budget, activations, on_all));
}

}  // namespace st
