// The time that a trainer's own plans should take, to be read beside what its steps do take.
#pragma once

#include <span>
#include <string>

#include "planner/rank_plan.h"

namespace st {

struct Forecast {
  double step_seconds = 0;
  StepShares shares = {};  // of the first of the plans
  double idle = 0;         // the share of the step in which ranks compute nothing; all plans of the run are there
  std::string json(const Machine& machine, double measured_seconds) const;  // not finite: null
};

/// `plans`: those of all ranks, in order, whose step is simulated; or that of one rank of a group, alone. `threads`: of a rank.
Forecast forecast(std::span<const Plan* const> plans, const Recipe& recipe, const Machine& machine, int32_t threads);

}  // namespace st
