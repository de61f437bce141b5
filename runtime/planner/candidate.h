// A recipe that a search considers, and what its plans say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/workers.h"
#include "planner/advice.h"

namespace st {

/// Seconds that a rank computes in a step, by the passes over its micro-batches; backward: with what it repeats of forward.
struct PassSeconds {
  double forward = 0, backward = 0;
};

struct Candidate {
  Recipe recipe;
  std::vector<KeyChange> changes;  // from the recipe that was asked for
  int64_t device_total = 0;        // of the fuller of the first and the last stage; of the fullest one once all stages are known
  int64_t by_rows = 0;             // what of it grows with the rows of a micro-batch, on the first stage
  double step_seconds = 0;         // of the slower of them, as if the other stages took as long
  StepShares shares;               // of these seconds
  PassSeconds passes;              // of the stage that the shares are of
  bool knows_all_stages = false;   // there is one stage, or all were planned and their step simulated
  int64_t plans = 0;               // that were made for it
  bool fits = false;

  /// "4 data x 2 tensor x 1 stages, zero 3, batch 2 x 4, recompute attention: computing 81 %, exchange along data 19 %".
  std::string text() const;
};

/// Plans the first and, if that fits, the last stage. nullopt: there is no plan of this combination of settings.
std::optional<Candidate> candidate_of(const PlannedRun& run, const Recipe& recipe);

/// Plans all stages of a pipeline, several at a time, and simulates their step: the candidate's numbers are theirs then. One that a stage
/// in between does not allow does not fit.
void know_all_stages(const PlannedRun& run, Candidate& of, Workers& workers);

}  // namespace st
