// Predicts the step time of a trainer from its own plans, and compares it with the steps that the trainer has made.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/run_plan.h"
#include "report/pipeline_times.h"
#include "report/timeline.h"

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
  StepShares shares = {};                    // of the first rank
  double idle = 0;                           // the share of the step in which ranks compute nothing; of a rank alone 0
  std::vector<Difference> differences = {};  // the largest first
  std::string ranks = "[]";                  // PredictedTimeline::json(); a rank alone has none

  std::string json(const Machine& machine, const MeasuredStep& measured) const;
};

/// Simulates a step of all ranks. For ranks that are processes, of which each has only its own plan.
Forecast forecast(const RunPlan& run, const MeasuredStep& measured = {});
/// `plans`: those of all ranks, in order, whose step is simulated; or that of one rank of a group, alone. `threads`: of a rank.
Forecast forecast(std::span<const Plan* const> plans, const Recipe& recipe, const Machine& machine, int32_t threads,
                  const MeasuredStep& measured = {});

}  // namespace st
