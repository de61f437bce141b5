#include "ir/cuts.h"

#include <algorithm>

#include "base/error.h"

namespace st {

void cut_parameters(Program& program, const CutGrain& grain_of) {
  const int64_t ranks = program.mesh.data;
  program.cuts.assign(program.slots.size(), {});
  int64_t turn = 0;  // whose turn it is to have one more
  for (size_t s = 0; s < program.slots.size(); ++s) {
    const Slot& slot = program.slots[s];
    if (slot.role != Role::parameter) continue;
    const int64_t elements = slot.type.shape.elements(), grain = grain_of ? grain_of(slot) : kCutGrain;
    const int64_t grains = (elements + grain - 1) / grain, more = grains % ranks;
    Ints& cuts = program.cuts[s];
    cuts.push_back(0);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const bool has_more = (rank - turn + ranks) % ranks < more;
      cuts.push_back(std::min(elements, cuts.back() + (grains / ranks + (has_more ? 1 : 0)) * grain));
    }
    turn = (turn + more) % ranks;
  }
}

SlotId part_of(Program& program, SlotId whole, SlotId parameter) {
  const int64_t elements = piece_elements(program, parameter, program.rank);
  if (elements == 0) return -1;
  const Slot& slot = program.slots[static_cast<size_t>(whole)];
  const std::string name = "part." + slot.name;
  if (const SlotId made = program.slot_named(name); made >= 0) return made;
  return program.add_slot({.name = name,
                           .type = {.dtype = slot.type.dtype, .shape = {elements}, .layout = {}},
                           .role = Role::part,
                           .init = {},
                           .of = parameter,
                           .part_of = whole,
                           .first = program.cuts[static_cast<size_t>(parameter)][static_cast<size_t>(program.rank)]});
}

}  // namespace st
