#include "passes/remove_slots.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace st {

void remove_slots(Program& program, const std::function<bool(SlotId slot)>& is_gone) {
  std::vector<SlotId> number(program.slots.size(), -1);
  std::vector<Slot> left;
  for (size_t s = 0; s < number.size(); ++s) {
    if (is_gone(static_cast<SlotId>(s))) continue;
    number[s] = static_cast<SlotId>(left.size());
    left.push_back(std::move(program.slots[s]));
  }
  const auto renumber = [&](SlotId& slot) {
    if (slot >= 0) slot = number[static_cast<size_t>(slot)];
  };
  program.slots = std::move(left);
  program.names.read_again(program.slots);
  for (Slot& slot : program.slots) renumber(slot.of);
  static_assert(sizeof(StepSlotIds) == std::tuple_size_v<decltype(program.step.all())> * sizeof(SlotId), "all() lists every slot id");
  for (SlotId* slot : program.step.all()) renumber(*slot);
  for (Section& section : program.sections)
    for (Node& node : section.graph.nodes) {
      std::ranges::for_each(node.reads, renumber);
      std::ranges::for_each(node.writes, renumber);
    }
}

}  // namespace st
