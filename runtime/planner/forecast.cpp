#include "planner/forecast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "base/json_line.h"
#include "planner/predicted_timeline.h"

namespace st {
namespace {

/// By rank; null: not known.
using TraceOf = std::function<const RankTrace*(int32_t rank)>;

/// The mean time of an action of each phase, by stage.
void compare_actions(const TraceOf& trace_of, const Mesh& mesh, const PipelineTimes& measured, std::vector<Difference>& all) {
  constexpr std::array<Phase, 4> kPhases = {Phase::forward, Phase::backward, Phase::backward_input, Phase::backward_weight};
  for (const StageLane& lane : measured.lanes) {
    if (lane.data_rank > 0 || lane.tensor_rank > 0) continue;
    const RankTrace* const trace = trace_of(rank_at(mesh, {.data = 0, .tensor = 0, .stage = lane.stage}));
    if (trace == nullptr) continue;
    for (const Phase phase : kPhases) {
      double took = 0, planned = 0, runs = 0;
      for (const StageRun& run : lane.runs)
        if (run.action.phase == phase) {
          took += run.computed();
          ++runs;
        }
      for (const TraceEvent& event : trace->events)
        if (event.kind == TraceEvent::Kind::compute && event.section >= 0 && trace->phases[static_cast<size_t>(event.section)] == phase)
          planned += event.seconds;
      if (runs > 0) all.push_back({text("stage ", lane.stage, ", ", name_of(phase), " of a micro-batch"), planned / runs, took / runs});
    }
  }
}

void compare_ranks(const TraceOf& trace_of, const StepTimes& measured, std::vector<Difference>& all) {
  for (size_t rank = 0; rank < measured.ranks.size(); ++rank) {
    const RankTimes& times = measured.ranks[rank];
    const RankTrace* const trace = trace_of(static_cast<int32_t>(rank));
    if (trace != nullptr && times.seconds > 0)
      all.push_back({text("rank ", rank, ", computing"), trace->seconds_of(TraceEvent::Kind::compute), times.computing()});
  }
}

std::vector<Difference> differences(const TraceOf& trace_of, const Recipe& recipe, const MeasuredStep& measured) {
  std::vector<Difference> all;
  if (measured.pipeline != nullptr) compare_actions(trace_of, mesh_of(recipe), *measured.pipeline, all);
  if (recipe.ranks > 1 && !measured.timeline.empty()) compare_ranks(trace_of, measured.timeline.back(), all);
  std::ranges::stable_sort(all, std::greater(), [](const Difference& of) { return std::abs(of.predicted - of.measured); });
  return all;
}

/// `run`: without watchers.
Forecast forecast_of_all(Simulation run, const Recipe& recipe, const MeasuredStep& measured) {
  Forecast made;
  made.shares = shares_of(run.trace(0), recipe);
  made.differences = differences([&](int32_t rank) { return &run.trace(rank); }, recipe, measured);
  const PredictedTimeline timeline(std::move(run));
  made.step_seconds = timeline.step().seconds();
  made.idle = timeline.step().idle();
  made.ranks = timeline.json();
  return made;
}

std::string json_of(const Difference& of) {
  JsonLine line;
  return line.add("what", of.what).add("predicted", of.predicted).add("measured", of.measured).text();
}

}  // namespace

Forecast forecast(const RunPlan& run, const MeasuredStep& measured) {
  return forecast_of_all(run.simulation(), run.run().recipe, measured);
}

Forecast forecast(std::span<const Plan* const> plans, const Recipe& recipe, const Machine& machine, int32_t threads,
                  const MeasuredStep& measured) {
  std::vector<RankTrace> traces;
  const Placement at{machine.ranks_per_node, recipe.ranks};
  for (const Plan* plan : plans) traces.push_back(trace_of(*plan, {recipe.step_micro_batches(), machine, at, threads}));
  if (static_cast<int64_t>(plans.size()) == recipe.ranks)
    return forecast_of_all({.mesh = mesh_of(recipe),
                            .links = plans.front()->program.links,
                            .trace = [&](int32_t rank) -> const RankTrace& { return traces[static_cast<size_t>(rank)]; }},
                           recipe, measured);
  const int32_t alone = plans.front()->program.mesh_rank();
  Forecast made;
  made.shares = shares_of(traces.front(), recipe);
  made.step_seconds = made.shares.all();
  made.differences = differences([&](int32_t rank) { return rank == alone ? traces.data() : nullptr; }, recipe, measured);
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
  line.add_json("differences", json_list(rows)).add_json("ranks", ranks);
  return line.add("measured", machine.is_measured).add("machine", machine.name).add("source", machine.source).text();
}

}  // namespace st
