// Where tensors are cut into the shards of the data ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "ir/program.h"

namespace st {

/// The ranges of a flat tensor: rank r has the elements [cuts[r], cuts[r + 1]). Grains go to the ranks in order, evenly; those that remain
/// go one each to `turn` and the ranks after it. A function, so that a plan for thousands of ranks holds no tables of them.
struct Cuts {
  int64_t elements = 0, grain = 1;
  int64_t turn = 0, ranks = 1;

  int64_t operator[](int64_t rank) const {
    const int64_t grains = (elements + grain - 1) / grain, rest = grains % ranks, wraps = std::max<int64_t>(turn + rest - ranks, 0);
    const int64_t more = std::min(rank, wraps) + std::clamp<int64_t>(rank - turn, 0, rest - wraps);  // of the rest, before this rank
    return std::min(elements, (grains / ranks * rank + more) * grain);
  }
  int64_t elements_of(int64_t rank) const { return (*this)[rank + 1] - (*this)[rank]; }
};

/// Elements between the places where a parameter may be cut: a multiple of kCutGrain, or all elements, which gives it to one rank.
using CutGrain = std::function<int64_t(const Slot& parameter)>;
/// A block of the gradient norm, so that a shard has the whole's partial sums (traps.md, order of sums 4).
constexpr int64_t kCutGrain = 1024;
/// Number of gradient-norm blocks; the last one may be shorter.
constexpr int64_t norm_blocks(int64_t elements) { return (elements + kCutGrain - 1) / kCutGrain; }

/// Sets Slot::sums over the data ranks for each parameter that has a gradient, or for every parameter (`frozen_too`). Remainders rotate
/// over all parameters, so that no rank has more than one grain more than another. Depends on neither the bucket size nor the ZeRO stage.
void cut_parameters(Program& program, const CutGrain& grain_of = {}, bool frozen_too = false);
/// Each rank updates what it sums: Slot::update of all parameters.
void update_by_shards(Program& program);

inline bool is_cut(const Program& program, SlotId parameter) { return program.slot(parameter).sums.is_flat(); }
/// The ranges in which the ranks sum a parameter's gradient. is_cut().
inline Cuts cuts_of(const Program& program, SlotId parameter) {
  const Slot& of = program.slot(parameter);
  return {of.type.shape.elements(), of.sums.grain, of.sums.where, program.mesh.data};
}
/// Gives a slot to one stage; the others have none of it.
void give_to_stage(Slot& slot, int32_t stage);
/// Whether this rank's stage has the slot.
inline bool is_here(const Program& program, const Slot& slot) {
  const AxisLayout& stage = slot.type.layout[MeshAxis::stage];
  return !stage.is_flat() || stage.where == program.stage;
}
/// The stage that has a slot which was given to one.
inline int32_t stage_of(const Slot& slot) { return slot.type.layout[MeshAxis::stage].where; }
/// This rank's part of a slot: its first element, and its type, which for a slot that is not flat is the slot's.
int64_t own_begin(const Program& program, const Slot& slot);
Type own_type(const Program& program, const Slot& slot);

/// The piece that a tensor rank has of a slot: its own, or that of its parameter, if the slot has its elements; not cut: all of it.
ParameterPiece piece_of(const Program& program, const Slot& slot, int32_t tensor_rank);
/// The elements of a slot for which a rank of the mesh answers: in a save, or a gather over all ranks. The ranges of all ranks are disjoint
/// and cover the slot; for what several ranks have, the first of them answers.
PieceRange held_by(const Program& program, const Slot& slot, int32_t mesh_rank);

/// The parameter whose ranges a slot has: a parameter's own.
inline SlotId cut_like(const Program& program, SlotId slot) {
  return program.slot(slot).role == Role::parameter ? slot : program.slot(slot).of;
}
/// Number of elements of a rank's shard of a parameter.
inline int64_t shard_elements(const Program& program, SlotId parameter, int32_t rank) {
  return cuts_of(program, parameter).elements_of(rank);
}
/// Whether this rank has elements of a cut parameter.
inline bool has_shard(const Program& program, SlotId parameter) { return shard_elements(program, parameter, program.rank) > 0; }

/// The type of this rank's shard of a slot with the elements of a cut parameter, whether the slot is flat or not.
Type shard_type(const Program& program, SlotId slot);

/// The elements of a slot's memory that a node reads or writes: all that this rank has. Of a slot that is stored whole only this rank's
/// shard if the node is a reduce_scatter, a load of a flat value, or an op whose first input is flat (a store, an accumulate, an
/// optimizer).
struct Access {
  int64_t first;  // element of the slot's memory
  Type type;
  bool is_shard;  // of a slot that is not flat
};
Access access_of(const Program& program, const Graph& graph, const Node& node, SlotId slot);

/// Whether a node gathers working copies of which each rank makes its shard (shard_masters); such a node does not run in every step.
bool gathers_copies(const Program& program, const Node& node);

/// Makes `whole`, a slot with the elements of a cut parameter, flat: this rank keeps its shard, which may be empty.
void make_flat(Program& program, SlotId whole, SlotId parameter);

}  // namespace st
