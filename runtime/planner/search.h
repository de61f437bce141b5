// The fastest recipe that fits: batch, recompute, ZeRO stage, offload, pipeline stages and schedule, tensor degree, for a number of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/advice.h"

namespace st {

struct Candidate {
  Recipe recipe;
  std::vector<KeyChange> changes;  // from the recipe that was asked for
  int64_t device_total = 0;        // of the fuller of the first and the last stage; of the best one, of all stages
  double step_seconds = 0;         // of the slower of them
  bool fits = false;
};

struct SearchResult {
  std::vector<Candidate> best;  // those that fit, fastest first; none fits: those that come nearest, smallest first
  int64_t planned = 0;          // plans that were made
  std::string text(const PlannedRun& run) const;
};

/// Keeps the rows of a step: batch x micro-batches. Plans each split of the ranks over stages, tensor and data ranks that the recipe and
/// the model allow, with the largest micro-batch and the least recomputation that fit, and skips splits that cannot be faster than the best
/// so far.
SearchResult search(const PlannedRun& run);

}  // namespace st
