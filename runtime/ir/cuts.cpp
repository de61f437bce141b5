#include "ir/cuts.h"

#include <algorithm>

#include "base/error.h"

namespace st {

void cut_parameters(Program& program, const CutGrain& grain_of, bool frozen_too) {
  const int64_t ranks = program.mesh.data;
  program.cuts.assign(program.slots.size(), {});
  int64_t turn = 0;  // the rank that gets the next remaining grain
  for (size_t s = 0; s < program.slots.size(); ++s) {
    const Slot& slot = program.slots[s];
    if (slot.role != Role::parameter || (!frozen_too && program.slot_named("gradient." + slot.name) < 0)) continue;
    const int64_t elements = slot.type.shape.elements(), grain = grain_of ? grain_of(slot) : kCutGrain;
    const int64_t grains = elements == 0 ? 0 : (elements - 1) / grain + 1, more = grains % ranks;
    Ints& cuts = program.cuts[s];
    cuts.push_back(0);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const bool has_more = (rank - turn + ranks) % ranks < more;
      cuts.push_back(std::min(elements, cuts.back() + (grains / ranks + (has_more ? 1 : 0)) * grain));
    }
    turn = (turn + more) % ranks;
  }
}

Shape piece_shape(const Program& program, SlotId parameter) {
  const Shape& all = program.slot(parameter).whole_shape();
  const int64_t elements = piece_elements(program, parameter, program.rank);
  return elements == all.elements() ? all : Shape{elements};
}

SlotId part_of(Program& program, SlotId whole, SlotId parameter) {
  if (piece_elements(program, parameter, program.rank) == 0) return -1;
  const Slot& slot = program.slot(whole);
  if (slot.whole) return whole;
  const std::string name = "part." + slot.name;
  if (const SlotId made = program.slot_named(name); made >= 0) return made;
  return program.add_slot({.name = name,
                           .type = {.dtype = slot.type.dtype, .shape = piece_shape(program, parameter), .layout = {}},
                           .role = Role::part,
                           .init = {},
                           .of = parameter,
                           .part_of = whole,
                           .first = piece_begin(program, parameter, program.rank)});
}

bool gathers_copies(const Program& program, const Node& node) {
  return node.op == Op::all_gather && node.when == When::first && program.slot(node.writes[0]).role == Role::working;
}

void shrink_to_piece(Program& program, SlotId whole, SlotId parameter) {
  Slot& slot = program.slot(whole);
  slot.whole = slot.type.shape;
  slot.type.shape = piece_shape(program, parameter);
  slot.first = piece_begin(program, parameter, program.rank);
}

}  // namespace st
