#include "planner/rank_clock.h"

#include <algorithm>
#include <map>

#include "base/mesh.h"

namespace st {
namespace {

/// The indices of the sends or receives, by the link of their message, in order.
std::map<int32_t, std::vector<size_t>> along_links(const Plan& plan, const std::vector<Instruction>& order, Instruction::Kind kind) {
  std::map<int32_t, std::vector<size_t>> all;
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i].kind == kind) all[plan.exchanges[static_cast<size_t>(order[i].exchange)].link].push_back(i);
  return all;
}

}  // namespace

std::vector<MessageTime> messages_waited_for(std::span<const Plan* const> plans, std::span<const RankClock> clocks, size_t rank) {
  const Plan& plan = *plans[rank];
  const RankClock& own = clocks[rank];
  MeshPosition at = position_of(plan.program.mesh, static_cast<int32_t>(rank));
  std::vector<MessageTime> times;
  for (const auto& [link, receives] : along_links(plan, own.order, Instruction::Kind::receive)) {
    at.stage = plan.exchanges[static_cast<size_t>(own.order[receives.front()].exchange)].other;
    const auto sender = static_cast<size_t>(rank_at(plan.program.mesh, at));
    // The messages of a link come in the order in which they are sent.
    const std::vector<size_t> sends = along_links(*plans[sender], clocks[sender].order, Instruction::Kind::send)[link];
    for (size_t i = 0; i < std::min(receives.size(), sends.size()); ++i) {
      const double sent = clocks[sender].ended[sends[i]];
      if (sent > own.began_at(receives[i])) times.push_back({receives[i], std::max(0.0, own.ended[receives[i]] - sent)});
    }
  }
  return times;
}

}  // namespace st
