// The plan of one rank of each stage of a run: one that fits on a stage may be too large for another, and all wait for the slowest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/workers.h"
#include "planner/run_plan.h"

namespace st {

struct PlannedStage {
  int32_t stage = 0, rank = 0;
  PlannedMemory memory;
  RankTrace trace;
};

/// For each stage, the rank with the data and tensor index of `rank`, whose plan is `of`. Plans the others, several at a time (`workers`),
/// from what `of` has left in `begun`.
std::vector<PlannedStage> planned_stages(const PlannedRun& run, const RankPlan& of, int32_t rank, BegunPlans& begun, Workers& workers);

/// For each stage, the memory of the rank that takes most, and the trace of the rank with the data and tensor index of `at`.
std::vector<PlannedStage> planned_stages(const RunPlan& all, const MeshPosition& at);

/// The first of those that take most memory.
const PlannedStage& fullest(std::span<const PlannedStage> stages);

/// A step by what the rank on `stage` does in it (pipeline_lane.h).
StepShares shares_of(std::span<const PlannedStage> stages, std::span<const StageLink> links, int32_t stage);

/// The seconds of a step: of a pipeline, of which `of` is the plan of `rank`, with all its stages.
double step_seconds(const PlannedRun& run, const RankPlan& of, int32_t rank, BegunPlans& begun, Workers& workers);

}  // namespace st
