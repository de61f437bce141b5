#include "ir/cuts.h"

#include "base/error.h"

namespace st {

void cut_parameters(Program& program, const CutGrain& grain_of, bool frozen_too) {
  const int64_t ranks = program.mesh.data;
  int64_t turn = 0;  // the rank that gets the next remaining grain
  for (Slot& slot : program.slots) {
    slot.sums = {};
    if (slot.role != Role::parameter || (!frozen_too && program.slot_named("gradient." + slot.name) < 0)) continue;
    const int64_t elements = slot.type.shape.elements(), grain = std::max<int64_t>(grain_of ? grain_of(slot) : kCutGrain, 1);
    slot.sums = {.kind = AxisLayout::Kind::flat, .where = static_cast<int32_t>(turn), .grain = grain};
    turn = (turn + (elements + grain - 1) / grain) % ranks;
  }
}

void update_by_shards(Program& program) {
  for (Slot& slot : program.slots) slot.update = slot.sums;
}

namespace {

Cuts cuts_of(const Program& program, const Slot& flat) {
  const AxisLayout& layout = flat.type.layout[MeshAxis::data];
  return {flat.type.shape.elements(), layout.grain, layout.where, program.mesh.data};
}

}  // namespace

int64_t own_begin(const Program& program, const Slot& slot) {
  return slot.type.layout.is_flat() ? cuts_of(program, slot)[program.rank] : 0;
}

Type own_type(const Program& program, const Slot& slot) {
  Type type = slot.type;
  if (!type.layout.is_flat()) return type;
  const Cuts cuts = cuts_of(program, slot);
  if (const int64_t elements = cuts.elements_of(program.rank); elements != cuts.elements) type.shape = {elements};
  return type;
}

SlotId part_of(Program& program, SlotId whole, SlotId parameter) {
  if (shard_elements(program, parameter, program.rank) == 0) return -1;
  const Slot& slot = program.slot(whole);
  if (slot.type.layout.is_flat()) return whole;
  const std::string name = "part." + slot.name;
  if (const SlotId made = program.slot_named(name); made >= 0) return made;
  const SlotId part =
      program.add_slot({.name = name, .type = Type(slot.type), .role = Role::part, .init = {}, .of = parameter, .part_of = whole});
  make_flat(program, part, parameter);
  return part;
}

bool gathers_copies(const Program& program, const Node& node) {
  return node.op == Op::all_gather && node.when == When::first && program.slot(node.writes[0]).role == Role::working;
}

void make_flat(Program& program, SlotId whole, SlotId parameter) {
  program.slot(whole).type.layout[MeshAxis::data] = program.slot(parameter).sums;
}

}  // namespace st
