#include "planner/forecast.h"

#include <vector>

#include "base/json_line.h"
#include "planner/simulation.h"

namespace st {

Forecast forecast(std::span<const Plan* const> plans, const Recipe& recipe, const Machine& machine, int32_t threads) {
  std::vector<RankTrace> traces;
  const Placement at{machine.ranks_per_node, recipe.ranks};
  for (const Plan* plan : plans) traces.push_back(trace_of(*plan, {recipe.step_micro_batches(), machine, at, threads, {}}));
  Forecast made;
  made.shares = shares_of(traces.front(), recipe);
  made.step_seconds = made.shares.all();
  if (static_cast<int64_t>(plans.size()) != recipe.ranks || recipe.ranks == 1) return made;
  const SimulatedStep step =
      simulate({.mesh = mesh_of(recipe), .links = plans.front()->program.links, .trace = [&](int32_t rank) -> const RankTrace& {
                  return traces[static_cast<size_t>(rank)];
                }});
  made.step_seconds = step.seconds();
  made.idle = step.idle();
  return made;
}

std::string Forecast::json(const Machine& machine, double measured_seconds) const {
  JsonLine line;
  line.add("step_seconds", step_seconds).add("measured_seconds", measured_seconds).add("computing", shares.computing).add("idle", idle);
  return line.add("measured", machine.is_measured).add("machine", machine.name).add("source", machine.source).text();
}

}  // namespace st
