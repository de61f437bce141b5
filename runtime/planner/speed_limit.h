// The wait that keeps the ranks of a run from being faster: for a link, or for the pipeline.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/planned_stages.h"

namespace st {

struct SpeedLimit {
  bool is_bubble = false;          // of the pipeline; else exchange over a link
  MeshAxis axis = MeshAxis::data;  // whose exchange waits
  bool is_between_nodes = false;   // the link
  double bytes_per_second = 0;     // of a rank, over it
  double share = 0;                // of the step
  double seconds_at_twice = 0;     // of a step, if the link had twice the rate; 0: a bubble

  std::string name() const;  // "the links between nodes"
};

/// The stages if the links of their messages had twice the rate: a message's latency stays.
std::vector<PlannedStage> at_twice_the_rate(std::vector<PlannedStage> stages);

/// The longest wait of this rank, whose step has these shares. Nothing: none takes a tenth of the step. `at_twice_for_messages`: the
/// seconds of a step of at_twice_the_rate().
std::optional<SpeedLimit> speed_limit(const PlannedRun& run, const RankPlan& of, const StepShares& shares, double at_twice_for_messages);

}  // namespace st
