#include "plan/accesses.h"

#include "ir/cuts.h"

namespace st {
namespace {

MemoryAccess access_at(const Place& place, SlotId slot, int64_t bytes, bool writes) {
  return {place.arena, place.arena == Arena::host ? slot : -1, place.offset, place.offset + bytes, writes};
}

std::vector<MemoryAccess> accesses_of_copies(const StateWindow& window, bool to_device) {
  std::vector<MemoryAccess> all;
  for (const bool writes : {false, true})
    for (const StagedBytes& of : window.copies)
      if (to_device || of.is_written) all.push_back(access_at(writes == to_device ? of.staged : of.home, -1, of.bytes, writes));
  return all;
}

}  // namespace

MemoryAccess access_of(const Plan& plan, SlotId slot, int64_t micro_batch, bool writes) {
  const Place place = plan.memory.of_micro_batch(plan.memory.slots[static_cast<size_t>(slot)], micro_batch);
  return access_at(place, slot, own_type(plan.program, plan.program.slot(slot)).bytes(), writes);
}

int64_t buffer_sent_from(const Plan& plan, const Instruction& at) {
  const Graph& graph = plan.program.sections[static_cast<size_t>(at.section)].graph;
  const StashBuffers* buffers = plan.memory.buffers_of(plan.memory.slots[static_cast<size_t>(graph.slot_behind(graph[at.node].in[0]))]);
  if (buffers == nullptr) return 0;
  if (at.within >= 0)  // of another chunk: for the buffer that begins with this section
    buffers = &plan.memory.stash[static_cast<size_t>(plan.program.sections[static_cast<size_t>(at.within)].chunk)];
  return buffers->begin_of(at.micro_batch);
}

std::vector<MemoryAccess> accesses_of(const Plan& plan, const Instruction& at) {
  using Kind = Instruction::Kind;
  std::vector<MemoryAccess> all;
  if (at.is_wait()) return all;
  if (at.is_copy()) return accesses_of_copies(plan.memory.windows[static_cast<size_t>(at.window)], at.kind == Kind::fetch);
  const auto section = static_cast<size_t>(at.section);
  const Graph& graph = plan.program.sections[section].graph;
  const Node& node = graph[at.node];
  const auto add = [&](const MemoryAccess& access) {
    if (access.end > access.begin) all.push_back(access);
  };
  const auto add_value = [&](Value v, bool writes) {
    const Place& place = plan.memory.values[section][static_cast<size_t>(v.node)][static_cast<size_t>(v.output)];
    const Place computed = plan.memory.where_computed(at.section, at.node, plan.memory.of_micro_batch(place, at.micro_batch));
    add(access_at(computed, graph.slot_behind(v), graph.type(v).bytes(), writes));
  };
  const auto add_slot = [&](SlotId slot, bool writes) {
    const Access access = access_of(plan.program, graph, node, slot);
    Place place = plan.memory.of_micro_batch(plan.memory.slots[static_cast<size_t>(slot)], at.micro_batch);
    place.offset += access.first * bytes_of(access.type.dtype);
    add(access_at(plan.memory.where_computed(at.section, at.node, place), slot, access.type.bytes(), writes));
  };
  for (const Value v : node.in) add_value(v, false);
  for (const SlotId slot : node.reads) add_slot(slot, false);
  for (int32_t i = 0; i < static_cast<int32_t>(node.out.size()); ++i) add_value({at.node, i}, true);
  for (const SlotId slot : node.writes) add_slot(slot, true);
  if (at.kind == Kind::kernel) add({Arena::workspace, -1, 0, plan.memory.of(Arena::workspace), true});
  return all;
}

}  // namespace st
