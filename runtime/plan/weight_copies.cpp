#include "plan/weight_copies.h"

#include "ir/cuts.h"

namespace st {
namespace {

/// By slot: whether the update writes it, or its shard of it.
std::vector<bool> written_by_update(const Program& program) {
  std::vector<bool> written(program.slots.size());
  if (const Section* const update = program.find(Phase::update))
    for (const Node& node : update->graph.nodes)
      for (const SlotId write : node.writes) written[static_cast<size_t>(write)] = true;
  return written;
}

}  // namespace

std::vector<std::vector<Copy>> weight_copies(const Program& program) {
  const std::vector<bool> written = written_by_update(program);
  const bool has_update = program.find(Phase::update) != nullptr;
  // The update leaves the copy of the weights that it writes, or does not touch its parameter.
  const auto lasts = [&](SlotId copy) {
    return has_update && (!written[static_cast<size_t>(program.slot(copy).of)] || written[static_cast<size_t>(copy)]);
  };
  std::vector<std::vector<Copy>> copies;
  for (const Section& section : program.sections) {
    const Graph& graph = section.graph;
    std::vector<Copy>& of = copies.emplace_back(graph.nodes.size(), Copy::none);
    for (int32_t n = 0; n < graph.size(); ++n) {
      const Node& node = graph[n];
      if (node.when != When::first || node.writes.empty() || node.op == Op::receive) continue;
      const SlotId written_slot = node.writes[0];
      const Slot& slot = program.slot(written_slot);
      Copy& made = of[static_cast<size_t>(n)];
      if (slot.role == Role::packed) made = Copy::of_step;
      if (slot.role != Role::working) continue;
      const bool is_of_shards = !slot.type.layout.is_flat() && program.slot(slot.of).type.layout.is_flat();
      made = is_of_shards ? Copy::gathered : lasts(written_slot) ? Copy::lasting : Copy::of_step;
      if (gathers_copies(program, node)) continue;
      if (const int32_t from = node.in[0].node; graph[from].when == When::first) of[static_cast<size_t>(from)] = made;
    }
  }
  return copies;
}

}  // namespace st
