#include "plan/operand_places.h"

#include <algorithm>
#include <map>
#include <set>

namespace st {
namespace {

using BufferSet = std::set<const StashBuffers*>;

BufferSet buffers_of(const Plan& plan, size_t section, int32_t n) {
  BufferSet set;
  const auto add = [&](const Place& place) {
    if (const StashBuffers* const buffers = plan.memory.buffers_of(place)) set.insert(buffers);
  };
  const Node& node = plan.program.sections[section].graph[n];
  const auto& values = plan.memory.values[section];
  for (const Value v : node.in) add(values[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]);
  for (const Place& place : values[static_cast<size_t>(n)]) add(place);
  for (const auto* slots : {&node.reads, &node.writes})
    for (const SlotId slot : *slots) add(plan.memory.slots[static_cast<size_t>(slot)]);
  return set;
}

}  // namespace

OperandPlaces::OperandPlaces(const Plan& plan) {
  std::map<BufferSet, int32_t> numbers;
  const auto add = [&](const BufferSet& set) {
    const auto [found, is_new] = numbers.try_emplace(set, static_cast<int32_t>(buffers_.size()));
    if (!is_new) return found->second;
    Buffers& made = buffers_.emplace_back();
    std::map<std::vector<int64_t>, int32_t> seen;
    for (int64_t k = 0; k < std::max<int64_t>(plan.micro_batches, 1); ++k) {
      std::vector<int64_t> begins;
      for (const StashBuffers* const buffers : set) begins.push_back(buffers->begin_of(k));
      made.number.push_back(seen.try_emplace(std::move(begins), static_cast<int32_t>(seen.size())).first->second);
    }
    made.count = static_cast<int32_t>(seen.size());
    return found->second;
  };
  for (size_t s = 0; s < plan.program.sections.size(); ++s) {
    auto& of_section = of_node_.emplace_back();
    for (int32_t n = 0; n < plan.program.sections[s].graph.size(); ++n) of_section.push_back(add(buffers_of(plan, s, n)));
  }
}

}  // namespace st
