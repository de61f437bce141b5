#include "planner/pipeline_lane.h"

#include <algorithm>
#include <vector>

#include "planner/simulation.h"

namespace st {
namespace {

/// Traces whose messages take `factor` times as long.
std::vector<RankTrace> with_messages(std::span<const RankTrace* const> traces, double factor) {
  std::vector<RankTrace> all;
  for (const RankTrace* of : traces) {
    all.push_back(*of);
    for (TraceEvent& event : all.back().events)
      if (event.kind == TraceEvent::Kind::send) event.seconds *= factor;
  }
  return all;
}

double seconds_of(std::span<const RankTrace> traces, std::span<const StageLink> links) {
  const Mesh mesh{.data = 1, .tensor = 1, .stage = static_cast<int32_t>(traces.size())};
  return simulate(
             {.mesh = mesh, .links = links, .trace = [&](int32_t stage) -> const RankTrace& { return traces[static_cast<size_t>(stage)]; }})
      .seconds();
}

}  // namespace

StepShares shares_in_lane(std::span<const RankTrace* const> traces, std::span<const StageLink> links, int32_t stage,
                          double message_factor) {
  StepShares shares = shares_alone(*traces[static_cast<size_t>(stage)]);
  const double without = seconds_of(with_messages(traces, 0), links), with = seconds_of(with_messages(traces, message_factor), links);
  shares.bubble = std::max(0.0, without - shares.all());
  shares.exchange[static_cast<size_t>(MeshAxis::stage)] += std::max(0.0, with - without);
  return shares;
}

}  // namespace st
