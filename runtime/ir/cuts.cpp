#include "ir/cuts.h"

#include <utility>

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

void give_to_stage(Slot& slot, int32_t stage) {
  slot.type.layout[MeshAxis::stage] = {
      .kind = AxisLayout::Kind::flat, .where = stage, .grain = std::max<int64_t>(slot.type.shape.elements(), 1)};
}

void update_by_shards(Program& program) {
  for (Slot& slot : program.slots) slot.update = slot.sums;
}

namespace {

Cuts cuts_of(const Program& program, const Type& flat) {
  const AxisLayout& layout = flat.layout[MeshAxis::data];
  return {flat.shape.elements(), layout.grain, layout.where, program.mesh.data};
}

/// The type of this rank's part of a tensor of that type. Within a stage's sections a value is the stage's own.
Type local(const Program& program, Type type) {
  const AxisLayout stage = std::exchange(type.layout[MeshAxis::stage], {});
  if (stage.is_flat() && stage.where != program.stage) {
    type.shape = {0};
    return type;
  }
  if (!type.layout.is_flat()) return type;
  const Cuts cuts = cuts_of(program, type);
  if (const int64_t elements = cuts.elements_of(program.rank); elements != cuts.elements) type.shape = {elements};
  return type;
}

}  // namespace

int64_t own_begin(const Program& program, const Slot& slot) {
  return slot.type.layout.is_flat() && is_here(program, slot) ? cuts_of(program, slot.type)[program.rank] : 0;
}

Type own_type(const Program& program, const Slot& slot) { return local(program, slot.type); }

ParameterPiece piece_of(const Program& program, const Slot& slot, int32_t tensor_rank) {
  const Slot& parameter = slot.role == Role::parameter || slot.of < 0 ? slot : program.slot(slot.of);
  const bool is_like_parameter = parameter.piece.is_cut() && slot.type.shape == parameter.type.shape;
  if (!slot.piece.is_cut() && !is_like_parameter) return {};
  ParameterPiece piece = slot.piece.is_cut() ? slot.piece : parameter.piece;
  piece.rank = tensor_rank;
  return piece;
}

PieceRange held_by(const Program& program, const Slot& slot, int32_t mesh_rank) {
  const MeshPosition at = position_of(program.mesh, mesh_rank);
  const AxisLayout& stage = slot.type.layout[MeshAxis::stage];
  if (at.stage != (stage.is_flat() ? stage.where : 0)) return {};
  ParameterPiece piece = piece_of(program, slot, at.tensor);
  if (!piece.is_cut() && at.tensor != 0) return {};
  if (!slot.type.layout.is_flat()) return {0, at.data == 0 ? slot.type.shape.elements() : 0, std::move(piece)};
  const Cuts cuts = cuts_of(program, slot.type);
  return {cuts[at.data], cuts.elements_of(at.data), std::move(piece)};
}

namespace {

bool takes_shard(const Graph& graph, const Node& node) {
  if (node.op == Op::load) return !node.out.empty() && node.out[0].layout.is_flat();
  if (info_of(node.op).exchange) return node.op == Op::reduce_scatter;
  return !node.in.empty() && graph.type(node.in[0]).layout.is_flat();
}

}  // namespace

Type shard_type(const Program& program, SlotId slot) {
  Type type = program.slot(slot).type;
  if (!type.layout.is_flat()) type.layout[MeshAxis::data] = program.slot(cut_like(program, slot)).sums;
  return local(program, type);
}

Access access_of(const Program& program, const Graph& graph, const Node& node, SlotId slot) {
  const Slot& of = program.slot(slot);
  const SlotId parameter = cut_like(program, slot);
  const bool is_shard = !of.type.layout.is_flat() && parameter >= 0 && is_cut(program, parameter) && takes_shard(graph, node);
  if (!is_shard) return {0, own_type(program, of), false};
  return {cuts_of(program, parameter)[program.rank], shard_type(program, slot), true};
}

bool gathers_copies(const Program& program, const Node& node) {
  return node.op == Op::all_gather && node.when == When::first && program.slot(node.writes[0]).role == Role::working;
}

void make_flat(Program& program, SlotId whole, SlotId parameter) {
  program.slot(whole).type.layout[MeshAxis::data] = program.slot(parameter).sums;
}

}  // namespace st
