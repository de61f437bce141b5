// Predicts the step time of a trainer from its own plans, and compares it with the steps that the trainer has made.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/rank_plan.h"
#include "train/pipeline_times.h"
#include "train/timeline.h"

namespace st {

/// Predicted and measured time of one part of a step.
struct Difference {
  std::string what;                    // "stage 1, backward_input of a micro-batch"
  double predicted = 0, measured = 0;  // seconds
};

/// The last step of a trainer.
struct MeasuredStep {
  double median_seconds = 0;  // of all steps; NaN: none
  std::span<const StepTimes> timeline = {};
  const PipelineTimes* pipeline = nullptr;  // null: one stage
};

struct Forecast {
  double step_seconds = 0;
  StepShares shares = {};                    // of the first of the plans
  double idle = 0;                           // the share of the step in which ranks compute nothing; all plans of the run are there
  std::vector<Difference> differences = {};  // the largest first

  std::string json(const Machine& machine, const MeasuredStep& measured) const;
};

/// `plans`: those of all ranks, in order, whose step is simulated; or that of one rank of a group, alone. `threads`: of a rank.
Forecast forecast(std::span<const Plan* const> plans, const Recipe& recipe, const Machine& machine, int32_t threads,
                  const MeasuredStep& measured = {});

}  // namespace st
