// The memory of each stage of a run: a plan that fits on one of them may be too large for another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/workers.h"
#include "planner/run_plan.h"

namespace st {

struct StageMemory {
  int32_t stage = 0, rank = 0;
  PlannedMemory memory;
};

/// By stage: the rank that is on it where `of`, the plan of `rank`, is on its own. Plans the others, several at a time (`workers`), from
/// what `of` has left in `begun`.
std::vector<StageMemory> stage_memory(const PlannedRun& run, const RankPlan& of, int32_t rank, BegunPlans& begun, Workers& workers);

/// By stage, the rank that takes most.
std::vector<StageMemory> stage_memory(const RunPlan& all);

/// The first of those that take most.
const StageMemory& fullest(std::span<const StageMemory> stages);

}  // namespace st
