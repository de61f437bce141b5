// The step of a lane: the ranks of one data and tensor index, one on each stage of a pipeline. Other lanes are alike, but for data ranks
// with fewer micro-batches than others, whose lane ends before theirs.
#pragma once

#include <span>

#include "planner/rank_plan.h"

namespace st {

/// The seconds of a step by what the rank on `stage` does in them. `traces`: by stage, of one data and tensor index; `links`: the
/// pipeline's. The exchange along the stage axis is what messages add to the step; the rest of a wait is the bubble: the schedule's, and
/// that of stages which take longer than this one.
StepShares shares_in_lane(std::span<const RankTrace* const> traces, std::span<const StageLink> links, int32_t stage);

}  // namespace st
