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
};

struct SplitResult {
  std::vector<Candidate> best;  // of each ZeRO stage that was looked at
  int64_t planned = 0;
  double computing = 0;  // as in the bounds; 0: not planned
};

/// Plans the largest micro-batch with the least recomputation that fit, for each ZeRO stage, and leaves out what cannot be faster than
/// the bounds.
SplitResult search_split(const PlannedRun& run, const RankSplit& split, SearchBounds bounds);

}  // namespace st
