// Everything that is asked of a run before it runs: one rank's plan, the changes that would help, the step of all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/workers.h"
#include "planner/advice.h"
#include "planner/goodput.h"
#include "planner/plan_page.h"
#include "planner/planned_stages.h"
#include "planner/run_plan.h"
#include "planner/search.h"
#include "planner/speed_limit.h"

namespace st {

struct BlueprintWishes {
  int32_t rank = 0;
  bool searches = false;               // the recipe becomes that of the fastest plan that fits
  bool simulates = false;              // all ranks
  std::optional<bool> advises;         // unset: if the plan does not fit
  std::vector<Trouble> troubles = {};  // of the simulation
  std::optional<Failures> failures = {};
  int64_t scales_to = 0;  // up to so many ranks, from 8 on, the same work of a data rank is planned too; 0: none
};

class Blueprint {
 public:
  /// Throws what plan_of_rank() throws. A search that finds nothing that fits takes what comes nearest. `workers` plan for a search, the
  /// memory of the other stages, and fixes.
  Blueprint(PlannedRun run, const BlueprintWishes& wishes, Workers& workers);

  const PlannedRun& run() const { return run_; }
  const RankPlan& of_rank() const { return of_rank_; }
  const std::vector<PlannedStage>& stages() const { return stages_; }
  /// A step by what the rank does in it: of a pipeline with what it waits for other stages.
  const StepShares& shares() const { return shares_; }
  /// On every stage.
  bool fits() const { return fits(fullest(stages_).memory) && fits(of_rank_.numbers.memory); }
  bool fits(const PlannedMemory& memory) const { return memory.device_total() <= run_.device_memory_of_rank(); }

  std::string json() const;  // capi/cli/README.md lists the keys
  std::string text() const;
  std::string page() const;   // HTML
  std::string trace() const;  // Chrome's format; with simulates

 private:
  void simulate(const std::vector<Trouble>& troubles);
  void advise(Workers& workers);
  PlanPage shown(std::span<const MemoryMoment> memory) const;

  int32_t rank_;
  SearchResult found_;
  PlannedRun run_;    // after a search: with its recipe
  BegunPlans begun_;  // while this is made
  RankPlan of_rank_;
  std::vector<PlannedStage> stages_;  // all of them
  StepShares shares_;                 // of the rank's step
  int32_t advised_;                   // the rank whose plan the fixes change: rank_, or the fullest one if the run does not fit
  std::vector<Fix> fixes_;
  std::optional<RunPlan> all_;
  std::optional<SimulatedStep> step_;
  std::vector<SimulatedSpan> spans_;  // of the ranks that pages show
  std::vector<ScalePoint> scaling_;
  double on_one_rank_ = 0;           // seconds for the same rows; 0: not asked for
  std::optional<SpeedLimit> limit_;  // if on_one_rank_ is known
  std::optional<Goodput> goodput_;
};

}  // namespace st
