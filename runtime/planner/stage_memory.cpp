#include "planner/stage_memory.h"

#include <algorithm>

namespace st {

std::vector<StageMemory> stage_memory(const PlannedRun& run, const RankPlan& of, int32_t rank, BegunPlans& begun, Workers& workers) {
  const Mesh mesh = run.mesh();
  std::vector<StageMemory> stages(static_cast<size_t>(mesh.stage));
  workers.run(mesh.stage, [&](int64_t i) {
    StageMemory& at = stages[static_cast<size_t>(i)];
    at.stage = static_cast<int32_t>(i);
    at.rank = rank_at(mesh, {.data = of.at.data, .tensor = of.at.tensor, .stage = at.stage});
    at.memory = at.rank == rank ? of.numbers.memory : plan_of_rank(run, at.rank, &begun).numbers.memory;
  });
  return stages;
}

std::vector<StageMemory> stage_memory(const RunPlan& all) {
  std::vector<StageMemory> stages;
  for (const RankClass& of : all.classes()) {  // in the order of stages
    const StageMemory at{of.at.stage, of.first, of.numbers.memory};
    if (stages.empty() || stages.back().stage != at.stage)
      stages.push_back(at);
    else if (at.memory.device_total() > stages.back().memory.device_total())
      stages.back() = at;
  }
  return stages;
}

const StageMemory& fullest(std::span<const StageMemory> stages) {
  return *std::ranges::max_element(stages, {}, [](const StageMemory& of) { return of.memory.device_total(); });
}

}  // namespace st
