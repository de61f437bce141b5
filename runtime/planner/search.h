// The fastest recipe that fits: batch, recompute, ZeRO stage, offload, pipeline stages and schedule, tensor degree, for a number of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/workers.h"
#include "planner/candidate.h"

namespace st {

struct SearchResult {
  std::vector<Candidate> best;  // those that fit, fastest first; none fits: those that come nearest, smallest first
  int64_t planned = 0;          // plans that were made
  std::string text(const PlannedRun& run) const;
};

/// Keeps the rows of a step: batch x micro-batches. Looks at each split of the ranks over stages, tensor and data ranks that the recipe
/// and the model allow, two at a time on `workers`. What is found does not depend on their number.
SearchResult search(const PlannedRun& run, Workers& workers);

}  // namespace st
