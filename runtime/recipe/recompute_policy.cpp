#include "recipe/recompute_policy.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "passes/recompute_choice.h"
#include "passes/recompute_scopes.h"
#include "passes/stage_parts.h"
#include "plan/pipeline_schedule.h"

namespace st {
namespace {

int64_t activation_bytes(const MemoryLayout& memory) {
  return memory.of(Arena::activations) + memory.of(Arena::stash) + memory.of(Arena::workspace);
}

int64_t other_bytes(const MemoryLayout& memory) { return memory.beside_parameters() - activation_bytes(memory); }

/// By outermost scope, its part of the model.
std::map<RegionId, int32_t> parts_of_scopes(const Program& program, const PipelineSchedule& schedule, std::string_view starts,
                                            const PlanOptions& options) {
  const Graph& forward = program.find(Phase::forward)->graph;
  std::span<const RegionId> given;
  if (options.part_starts != nullptr) given = *options.part_starts;
  const std::vector<int32_t> part_of = parts_of_forward(program, schedule.stage_of_parts(), starts, given);
  std::map<RegionId, int32_t> parts_of;
  for (int32_t n = 0; n < forward.size(); ++n)
    if (!is_made_anywhere(forward[n])) parts_of.emplace(outermost_of(program, forward[n].region), part_of[static_cast<size_t>(n)]);
  return parts_of;
}

/// Recomputed scopes decide the messages between stages, so each stage's plan has the scopes of all: each stage's own fit its memory.
class AutoScopes {
 public:
  AutoScopes(const Program& program, const Recipe& recipe, const PlanOptions& options, const Replan& replan)
      : program_(program), recipe_(recipe), options_(options), replan_(replan) {}

  std::vector<RegionId> of_all_stages() {
    if (recipe_.stages == 1) return of_stage(0, {});
    const PipelineSchedule schedule = schedule_of(recipe_);
    const std::map<RegionId, int32_t> part_of = parts_of_scopes(program_, schedule, recipe_.stage_starts, options_);
    std::vector<RegionId> all;
    for (int32_t stage = 0; stage < schedule.stages; ++stage) {
      const std::vector<RegionId> own = of_stage(stage, [&](RegionId scope) {
        const auto found = part_of.find(scope);
        const bool is_own = found != part_of.end() && schedule.stage_of(found->second) == stage;
        return is_own ? in_flight(schedule, stage, schedule.chunk_of(found->second)) : 0;
      });
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

 private:
  MemoryLayout memory_with(std::span<const RegionId> scopes, const PlanOptions& options) const {
    const std::vector<RegionId> chosen(scopes.begin(), scopes.end());
    PlanOptions asked = options;
    asked.print = {};
    asked.skip.emplace_back("pack_weights");  // where packed weights do not fit, a step does without
    asked.recompute_scopes = &chosen;
    return replan_(program_, asked);
  }

  std::vector<RegionId> of_stage(int32_t stage, const StashBuffersOf& buffers) const {
    PlanOptions options = options_;
    if (recipe_.stages > 1) options.stage = stage;
    int64_t budget = recipe_.recompute_budget;
    if (budget == 0) {
      if (options.memory == PlanOptions::kUnlimited) return {};
      budget = std::max<int64_t>(0, options.memory - other_bytes(memory_with({}, options)));
    }
    const auto planned = [&](std::span<const RegionId> scopes) { return activation_bytes(memory_with(scopes, options)); };
    const auto on_all = [&](std::span<const RegionId> scopes) { return most_on_all(scopes, options); };
    return scopes_that_fit(program_, budget, planned, on_all, buffers);
  }

  /// The most of all ranks, where the other stages have as little as they can.
  int64_t most_on_all(std::span<const RegionId> scopes, const PlanOptions& of_stage) const {
    PlanOptions of = of_stage;
    const std::vector<RegionId> outer = outermost_scopes(program_);
    int64_t most = 0;
    for (int32_t stage = 0; stage < recipe_.stages; ++stage)
      for (of.rank = 0; of.rank < recipe_.data_ranks(); ++of.rank) {
        if (recipe_.stages > 1) of.stage = stage;
        most = std::max(most, activation_bytes(memory_with(of.stage == of_stage.stage ? scopes : outer, of)));
      }
    return most;
  }

  const Program& program_;
  const Recipe& recipe_;
  const PlanOptions& options_;
  const Replan& replan_;
};

}  // namespace

RecomputeRecord recompute_by(Program& program, const Recipe& recipe, const PlanOptions& options, const Replan& replan) {
  if (options.recompute_scopes != nullptr) return recompute(program, *options.recompute_scopes);
  check(recipe.recompute == "auto" || recipe.recompute_budget == 0, "recipe: recompute_budget is ", recipe.recompute_budget,
        ", which needs recompute auto, but recompute is ", recipe.recompute, "; set recompute to auto or leave the budget out");
  if (recipe.recompute != "auto") return recompute(program, scopes_to_recompute(program, recipe.recompute));
  return recompute(program, AutoScopes(program, recipe, options, replan).of_all_stages());
}

}  // namespace st
