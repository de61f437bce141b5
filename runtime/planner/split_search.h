// The fastest recipes for one split of the ranks over stages, tensor and data ranks.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "planner/candidate.h"

namespace st {

struct RankSplit {
  int64_t stages = 1, tensor = 1;
};

/// The best that other splits have reached.
struct SearchBounds {
  double fastest = HUGE_VAL;  // seconds of the fastest step that fits
  double computing = 0;       // seconds that ranks which share a step evenly compute, without recomputation; 0: not known
  PassSeconds passes;         // of these seconds
};

struct SplitResult {
  std::vector<Candidate> best;  // of each ZeRO stage that was looked at
  int64_t planned = 0;
  double computing = 0;  // as in the bounds; 0: not planned
  PassSeconds passes;
};

/// Seconds that every stage waits at least under the recipe's schedule, whatever the times of forward and backward: the last stage until
/// the first micro-batch has passed the others' first parts, and the first one until its gradients have come back through them. With
/// backward split, the gradients of weights can fill the second wait. 0: the schedule is a host's table.
double least_bubble(const Recipe& recipe, int64_t stages, const PassSeconds& of_step, double micro_batches);

/// Plans micro-batches that divide a data rank's rows, each at most half the one before, and then those next to the best, with the least
/// recomputation that fits, for each ZeRO stage; under other schedules too if they can be faster. Leaves out what is slower than the
/// bounds.
SplitResult search_split(const PlannedRun& run, const RankSplit& split, SearchBounds bounds);

}  // namespace st
