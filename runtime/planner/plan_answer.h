// What a plan says, as JSON for tools and as text for people.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "planner/advice.h"
#include "planner/run_plan.h"

namespace st {

/// What one wants to know of a run before it runs; what is not asked for is left out.
struct PlanAnswer {
  const PlannedRun& run;
  int32_t rank = 0;
  const RankPlan& of_rank;
  std::span<const Fix> fixes = {};
  const RunPlan* all = nullptr;  // with `step`
  const SimulatedStep* step = nullptr;
  const Goodput* goodput = nullptr;

  bool fits() const { return of_rank.numbers.memory.device_total() <= run.device_memory_of_rank(); }
};

/// capi/cli/README.md lists the keys.
std::string json_of(const PlanAnswer& answer);
std::string text_of(const PlanAnswer& answer);

}  // namespace st
