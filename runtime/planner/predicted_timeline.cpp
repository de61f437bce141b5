#include "planner/predicted_timeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json_line.h"
#include "base/text.h"
#include "comm/flight_recorder.h"
#include "report/timeline.h"

namespace st {
namespace {

constexpr int64_t kMostLanes = 32;

int64_t microseconds(double seconds) { return std::llround(seconds * 1e6); }

bool is_shown(const Mesh& mesh, const MeshPosition& at) { return mesh.ranks() <= kMostLanes || (at.data == 0 && at.tensor == 0); }

}  // namespace

PredictedTimeline::PredictedTimeline(Simulation run) : run_(std::move(run)) {
  for (int32_t rank = 0; rank < run_.mesh.ranks(); ++rank)
    if (const MeshPosition at = position_of(run_.mesh, rank); is_shown(run_.mesh, at))
      shown_[rank].lane = {.rank = rank, .stage = at.stage, .data_rank = at.data, .tensor_rank = at.tensor, .runs = {}};
  run_.watch = [this](const SimulatedSpan& span) { add(span); };
  run_.watch_collective = [this](const SimulatedCollective& of) {
    if (const auto found = shown_.find(of.rank); found != shown_.end()) found->second.exchanges.push_back(of);
  };
  step_ = simulate(run_);
}

void PredictedTimeline::add(const SimulatedSpan& span) {
  const auto found = shown_.find(span.rank);
  if (found == shown_.end()) return;
  auto& [lane, computed, exchanges] = found->second;
  const bool computes = span.kind == TraceEvent::Kind::compute;
  if (computes && !computed.empty() && computed.back().ended == span.began)
    computed.back().ended = span.ended;
  else if (computes)
    computed.push_back({span.began, span.ended});
  if (!computes || span.section < 0) return;
  const RankTrace& trace = run_.trace(span.rank);
  const auto section = static_cast<size_t>(span.section);
  const StageAction action{trace.phases[section], trace.chunks[section], span.micro_batch * run_.mesh.data + lane.data_rank};
  if (action.phase == Phase::update) return;
  if (lane.runs.empty() || lane.runs.back().action != action) lane.runs.push_back({.action = action, .began = span.began});
  StageRun& last = lane.runs.back();
  last.exchanged += last.ended > 0 ? span.began - last.ended : 0;
  last.ended = span.ended;
}

std::string PredictedTimeline::exchanges_json(const OfRank& of) const {
  constexpr size_t kLabel = sizeof(FlightRecord::label) - 1;
  std::vector<SimulatedCollective> sorted = of.exchanges;
  std::ranges::stable_sort(sorted, {}, &SimulatedCollective::began);
  std::vector<std::string> rows;
  for (const SimulatedCollective& each : sorted) {
    const NamedCollective& named = run_.trace(each.rank).collectives[static_cast<size_t>(each.collective)];
    JsonLine line;
    line.add("collective", named.name).add("label", named.label.substr(0, kLabel));
    rows.push_back(line.add("began_us", microseconds(each.began)).add("ended_us", microseconds(each.ended)).text());
  }
  return json_list(rows);
}

std::string PredictedTimeline::json() const {
  const double seconds = step_.seconds();
  PipelineTimes pipeline;
  for (const auto& [rank, of] : shown_) pipeline.lanes.push_back(of.lane);
  std::vector<std::string> ranks;
  for (const auto& [rank, of] : shown_) {
    const SimulatedRank& simulated = step_.ranks[static_cast<size_t>(rank)];
    const double exposed = seconds - simulated.computed;
    double collectives = 0;
    for (const SimulatedCollective& each : of.exchanges) collectives += each.ended - each.began;
    std::vector<std::string> computed;
    for (const Interval& each : of.computed) computed.push_back(text('[', microseconds(each.began), ',', microseconds(each.ended), ']'));
    JsonLine line;
    line.add("rank", rank);
    RankTimes{.seconds = seconds, .exchange = std::max(collectives, exposed), .exposed = exposed}.add_to(line);
    line.add("began_us", 0).add("ended_us", microseconds(seconds));
    line.add_json("computed_us", json_list(computed)).add_json("exchanges", exchanges_json(of));
    pipeline.add_to(line, of.lane);
    ranks.push_back(line.text());
  }
  return json_list(ranks);
}

}  // namespace st
