// Where parameters are cut into the shards of the ranks.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/program.h"

namespace st {

/// Elements between the places where a parameter may be cut: a multiple of kCutGrain, or all elements, which gives it to one rank.
using CutGrain = std::function<int64_t(const Slot& parameter)>;
/// A block of the gradient norm, so that a shard has the whole's partial sums (traps.md, order of sums 4).
constexpr int64_t kCutGrain = 1024;
/// Number of gradient-norm blocks; the last one may be shorter.
constexpr int64_t norm_blocks(int64_t elements) { return (elements + kCutGrain - 1) / kCutGrain; }

/// Fills program.cuts over the ranks of the data axis for each parameter that has a gradient, or for every parameter (`frozen_too`). Grains
/// go to the ranks in order, evenly. Remainders rotate over all parameters, so that no rank has more than one grain more than another.
/// Depends on neither the bucket size nor the ZeRO stage.
void cut_parameters(Program& program, const CutGrain& grain_of = {}, bool frozen_too = false);
inline bool is_cut(const Program& program, SlotId parameter) {
  return static_cast<size_t>(parameter) < program.cuts.size() && !program.cuts[static_cast<size_t>(parameter)].empty();
}

/// The first element of a rank's shard of a parameter, and the shard's number of elements.
inline int64_t piece_begin(const Program& program, SlotId parameter, int32_t rank) {
  return program.cuts[static_cast<size_t>(parameter)][static_cast<size_t>(rank)];
}
inline int64_t piece_elements(const Program& program, SlotId parameter, int32_t rank) {
  return piece_begin(program, parameter, rank + 1) - piece_begin(program, parameter, rank);
}
/// Shape of this rank's shard: the parameter's own shape if the rank has all of it, else one dimension.
Shape piece_shape(const Program& program, SlotId parameter);

/// The slot of this rank's shard of `whole`, a slot with the elements of a cut parameter; -1: the shard is empty. Returns `whole` if that
/// slot is a shard already, else the slot "part.<whole>", created if needed.
SlotId part_of(Program& program, SlotId whole, SlotId parameter);

/// Whether a node gathers working copies of which each rank makes its shard (keep_master_pieces); such a node does not run in every step.
bool gathers_copies(const Program& program, const Node& node);

/// Reduces `whole`, a slot with the elements of a cut parameter, to this rank's shard, which may be empty.
void shrink_to_piece(Program& program, SlotId whole, SlotId parameter);

}  // namespace st
