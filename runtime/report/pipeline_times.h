// When each stage of a pipeline computed what, in the last step: for a run's report and for trace viewers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_line.h"
#include "comm/communicator.h"
#include "exec/stage_runs.h"

namespace st {

/// The actions of one rank, in its order. Their micro-batches count those of all data ranks.
struct StageLane {
  int32_t rank = 0, stage = 0, data_rank = 0, tensor_rank = 0;
  std::vector<StageRun> runs;
};

struct PipelineTimes {
  int64_t step = 0;
  std::vector<StageLane> lanes;  // by rank; empty: one stage, or no step

  double began() const;  // of the first action of any rank, in seconds
  double ended() const;  // of the last one
  /// The share of the time between the two in which a rank computed nothing; NaN without actions.
  double bubble(const StageLane& lane) const;
  double bubble() const;  // the mean of all ranks
  /// Adds the keys "stage" to "actions" of st_trainer_timeline.
  void add_to(JsonLine& line, const StageLane& lane) const;
};

/// Collective call of ranks that are processes: the lanes of all of them, by rank, from each rank's own ones of the same step. Times are on
/// the clock of rank 0's host, exact within its host; those of other hosts are shifted by what the clocks differ after a barrier.
PipelineTimes gather_lanes(Communicator& ranks, const PipelineTimes& own);

}  // namespace st
