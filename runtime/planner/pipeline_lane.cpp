#include "planner/pipeline_lane.h"

#include <algorithm>

#include "planner/simulation.h"

namespace st {
namespace {

/// Seconds of the whole lane's step if messages take `factor` times as long.
double seconds_of(std::span<const RankTrace* const> traces, std::span<const StageLink> links, double factor) {
  const Mesh mesh{.data = 1, .tensor = 1, .stage = static_cast<int32_t>(traces.size())};
  return simulate({.mesh = mesh,
                   .links = links,
                   .trace = [&](int32_t stage) -> const RankTrace& { return *traces[static_cast<size_t>(stage)]; },
                   .pace = [&](int32_t) { return RankPace{.messages = factor}; }})
      .seconds();
}

}  // namespace

StepShares shares_in_lane(std::span<const RankTrace* const> traces, std::span<const StageLink> links, int32_t stage) {
  StepShares shares = shares_alone(*traces[static_cast<size_t>(stage)]);
  const double without = seconds_of(traces, links, 0), with = seconds_of(traces, links, 1);
  shares.bubble = std::max(0.0, without - shares.all());
  shares.exchange[static_cast<size_t>(MeshAxis::stage)] += std::max(0.0, with - without);
  return shares;
}

}  // namespace st
