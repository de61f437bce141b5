#include "planner/planned_stages.h"

#include <algorithm>
#include <utility>

#include "planner/pipeline_lane.h"

namespace st {

std::vector<PlannedStage> planned_stages(const PlannedRun& run, const RankPlan& of, int32_t rank, BegunPlans& begun, Workers& workers) {
  const Mesh mesh = run.mesh();
  std::vector<PlannedStage> stages(static_cast<size_t>(mesh.stage));
  workers.run(mesh.stage, [&](int64_t i) {
    PlannedStage& at = stages[static_cast<size_t>(i)];
    at.stage = static_cast<int32_t>(i);
    at.rank = rank_at(mesh, {.data = of.at.data, .tensor = of.at.tensor, .stage = at.stage});
    if (at.rank == rank) {
      at.memory = of.numbers.memory;
      at.trace = of.trace;
      return;
    }
    RankPlan planned = plan_of_rank(run, at.rank, &begun);
    at.memory = planned.numbers.memory;
    at.trace = std::move(planned.trace);
  });
  return stages;
}

std::vector<PlannedStage> planned_stages(const RunPlan& all, const MeshPosition& at) {
  std::vector<PlannedStage> stages;
  for (const RankClass& of : all.classes()) {  // in the order of stages
    const PlannedStage next{of.at.stage, of.first, of.numbers.memory, {}};
    if (stages.empty() || stages.back().stage != next.stage)
      stages.push_back(next);
    else if (next.memory.device_total() > stages.back().memory.device_total())
      stages.back() = next;
  }
  for (PlannedStage& of : stages)  // of one lane: other data ranks may have more micro-batches
    of.trace = all.class_of(rank_at(all.run().mesh(), {.data = at.data, .tensor = at.tensor, .stage = of.stage})).trace;
  return stages;
}

const PlannedStage& fullest(std::span<const PlannedStage> stages) {
  return *std::ranges::max_element(stages, {}, [](const PlannedStage& of) { return of.memory.device_total(); });
}

StepShares shares_of(std::span<const PlannedStage> stages, std::span<const StageLink> links, int32_t stage) {
  std::vector<const RankTrace*> traces;
  for (const PlannedStage& of : stages) traces.push_back(&of.trace);
  return shares_in_lane(traces, links, stage);
}

double step_seconds(const PlannedRun& run, const RankPlan& of, int32_t rank, BegunPlans& begun, Workers& workers) {
  if (run.mesh().stage == 1) return of.step_seconds(run.recipe);
  return shares_of(planned_stages(run, of, rank, begun, workers), of.plan.program.links, of.at.stage).all();
}

}  // namespace st
