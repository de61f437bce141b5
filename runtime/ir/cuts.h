// Where parameters are cut into the ranks' pieces.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/program.h"

namespace st {

/// Elements between places where a parameter may be cut: a multiple of kCutGrain, or all of them, then one rank has all of it.
using CutGrain = std::function<int64_t(const Slot& parameter)>;
constexpr int64_t kCutGrain = 1024;  // blocks of the gradient norm: a piece's partial sums are the whole's (traps.md, order of sums 4)
/// Blocks of the gradient norm, of which the last may be shorter.
constexpr int64_t norm_blocks(int64_t elements) { return (elements + kCutGrain - 1) / kCutGrain; }

/// Fills program.cuts for the ranks of the data axis, of each parameter that has a gradient, or of every one (`frozen_too`). Its grains go
/// to the ranks in order, evenly; who gets one more goes round over all parameters, so that no rank has more than one grain more than
/// another. Depends on neither the bucket nor the stage of ZeRO.
void cut_parameters(Program& program, const CutGrain& grain_of = {}, bool frozen_too = false);
inline bool is_cut(const Program& program, SlotId parameter) {
  return static_cast<size_t>(parameter) < program.cuts.size() && !program.cuts[static_cast<size_t>(parameter)].empty();
}

/// The element of a parameter that a rank's piece begins with, and how many it has.
inline int64_t piece_begin(const Program& program, SlotId parameter, int32_t rank) {
  return program.cuts[static_cast<size_t>(parameter)][static_cast<size_t>(rank)];
}
inline int64_t piece_elements(const Program& program, SlotId parameter, int32_t rank) {
  return piece_begin(program, parameter, rank + 1) - piece_begin(program, parameter, rank);
}
/// This rank's piece of a parameter in shape: all of it as it is, else a list.
Shape piece_shape(const Program& program, SlotId parameter);

/// The slot of this rank's piece of `whole`, a slot of a cut parameter's elements; -1: it has none. Where the slot itself is a piece it is
/// that; else it is "part.<whole>", made if need be.
SlotId part_of(Program& program, SlotId whole, SlotId parameter);

/// Whether a node gathers working copies of which each rank makes its piece (keep_master_pieces), which is not in every step.
bool gathers_copies(const Program& program, const Node& node);

/// Leaves of `whole`, a slot of a cut parameter's elements, this rank's piece, which may be empty.
void shrink_to_piece(Program& program, SlotId whole, SlotId parameter);

}  // namespace st
