#include "planner/forecast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "base/json_line.h"
#include "planner/simulation.h"

namespace st {
namespace {

/// The mean time of an action of each phase, by stage.
void compare_actions(const std::vector<RankTrace>& traces, const Recipe& recipe, const PipelineTimes& measured,
                     std::vector<Difference>& all) {
  constexpr std::array<Phase, 4> kPhases = {Phase::forward, Phase::backward, Phase::backward_input, Phase::backward_weight};
  const Mesh mesh = mesh_of(recipe);
  for (const StageLane& lane : measured.lanes) {
    if (lane.data_rank > 0 || lane.tensor_rank > 0) continue;
    const auto rank = static_cast<size_t>(rank_at(mesh, {.data = 0, .tensor = 0, .stage = lane.stage}));
    if (rank >= traces.size()) continue;
    for (const Phase phase : kPhases) {
      double took = 0, planned = 0, runs = 0;
      for (const StageRun& run : lane.runs)
        if (run.action.phase == phase) {
          took += run.computed();
          ++runs;
        }
      for (const TraceEvent& event : traces[rank].events)
        if (event.kind == TraceEvent::Kind::compute && event.section >= 0 &&
            traces[rank].phases[static_cast<size_t>(event.section)] == phase)
          planned += event.seconds;
      if (runs > 0) all.push_back({text("stage ", lane.stage, ", ", name_of(phase), " of a micro-batch"), planned / runs, took / runs});
    }
  }
}

void compare_ranks(const std::vector<RankTrace>& traces, const StepTimes& measured, std::vector<Difference>& all) {
  for (size_t rank = 0; rank < std::min(traces.size(), measured.ranks.size()); ++rank) {
    const RankTimes& times = measured.ranks[rank];
    if (times.seconds > 0)
      all.push_back({text("rank ", rank, ", computing"), traces[rank].seconds_of(TraceEvent::Kind::compute), times.computing()});
  }
}

std::string json_of(const Difference& of) {
  JsonLine line;
  return line.add("what", of.what).add("predicted", of.predicted).add("measured", of.measured).text();
}

}  // namespace

Forecast forecast(std::span<const Plan* const> plans, const Recipe& recipe, const Machine& machine, int32_t threads,
                  const MeasuredStep& measured) {
  std::vector<RankTrace> traces;
  const Placement at{machine.ranks_per_node, recipe.ranks};
  for (const Plan* plan : plans) traces.push_back(trace_of(*plan, {recipe.step_micro_batches(), machine, at, threads, {}}));
  Forecast made;
  made.shares = shares_of(traces.front(), recipe);
  made.step_seconds = made.shares.all();
  if (measured.pipeline != nullptr) compare_actions(traces, recipe, *measured.pipeline, made.differences);
  if (recipe.ranks > 1 && !measured.timeline.empty()) compare_ranks(traces, measured.timeline.back(), made.differences);
  std::ranges::stable_sort(made.differences, std::greater(), [](const Difference& of) { return std::abs(of.predicted - of.measured); });
  if (static_cast<int64_t>(plans.size()) != recipe.ranks || recipe.ranks == 1) return made;
  const SimulatedStep step =
      simulate({.mesh = mesh_of(recipe), .links = plans.front()->program.links, .trace = [&](int32_t rank) -> const RankTrace& {
                  return traces[static_cast<size_t>(rank)];
                }});
  made.step_seconds = step.seconds();
  made.idle = step.idle();
  return made;
}

std::string Forecast::json(const Machine& machine, const MeasuredStep& measured) const {
  JsonLine line;
  std::vector<std::string> rows;
  for (const Difference& of : differences) rows.push_back(json_of(of));
  line.add("step_seconds", step_seconds)
      .add("measured_seconds", measured.median_seconds)
      .add("computing", shares.computing)
      .add("idle", idle);
  line.add_json("differences", json_list(rows));
  return line.add("measured", machine.is_measured).add("machine", machine.name).add("source", machine.source).text();
}

}  // namespace st
