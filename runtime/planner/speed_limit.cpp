#include "planner/speed_limit.h"

namespace st {

std::string SpeedLimit::name() const {
  if (is_bubble) return "the pipeline's bubble";
  return is_between_nodes ? "the links between nodes" : "the links in a node";
}

std::vector<PlannedStage> at_twice_the_rate(std::vector<PlannedStage> stages) {
  for (PlannedStage& stage : stages)
    for (TraceEvent& event : stage.trace.events)
      if (event.kind == TraceEvent::Kind::send) event.seconds = (event.seconds + event.latency) / 2;
  return stages;
}

std::optional<SpeedLimit> speed_limit(const PlannedRun& run, const RankPlan& of, const StepShares& shares, double at_twice_for_messages) {
  constexpr double kLeast = 0.1;
  SpeedLimit limit{.is_bubble = true};
  double longest = shares.bubble;
  for (int32_t axis = 0; axis < kMeshAxes; ++axis) {
    const double seconds = shares.exchange[static_cast<size_t>(axis)];
    if (seconds <= longest) continue;
    longest = seconds;
    limit.is_bubble = false;
    limit.axis = static_cast<MeshAxis>(axis);
  }
  if (longest <= kLeast * shares.all()) return std::nullopt;
  limit.share = longest / shares.all();
  if (limit.is_bubble) return limit;
  limit.bytes_per_second = link_of_group(run.machine, run.mesh(), limit.axis, run.placement()).bytes_per_second;
  Machine faster = run.machine;
  faster.between_nodes.bytes_per_second *= 2;
  limit.is_between_nodes = link_of_group(faster, run.mesh(), limit.axis, run.placement()).bytes_per_second > limit.bytes_per_second;
  if (!limit.is_between_nodes) {
    faster = run.machine;
    faster.in_node.bytes_per_second *= 2;
  }
  if (limit.axis == MeshAxis::stage) {
    limit.seconds_at_twice = at_twice_for_messages;
    return limit;
  }
  const RankTrace trace = trace_of(of.plan, {run.recipe.step_micro_batches(), faster, run.placement(), run.threads()});
  limit.seconds_at_twice = shares.all() - shares_alone(of.trace).all() + shares_alone(trace).all();
  return limit;
}

}  // namespace st
