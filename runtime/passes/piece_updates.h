// Updates of parameters of which each rank along the tensor axis has a piece.
#pragma once

#include "ir/build.h"
#include "ir/optimizer_choice.h"

namespace st {

/// A tensor of an optimizer's state on this rank. For a piece it is a piece of the whole's state, except Adafactor's variances of rows and
/// columns, which all ranks have whole.
struct PieceState {
  std::string_view name;
  Type type;
  ParameterPiece piece = {};  // where the state is cut otherwise than the parameter: the scales of adamw_8bit
};
/// Throws unsupported for adamw_8bit, with the parameter and the numbers, where a block of the whole has elements of several ranks.
std::vector<PieceState> state_of(const Slot& parameter, const OptimizerChoice& optimizer);

/// Appends the update of a piece by an optimizer that needs the whole parameter (takes_whole): steps on the piece, with the sums or the
/// gather over the ranks that the next one needs. Within rounding of the update of the whole; all ranks have alike what they share.
/// `in`: the optimizer's inputs; `slots`: the parameter, the state and a working copy, if there is one.
void update_piece(Builder& b, const OptimizerChoice& optimizer, const std::vector<Value>& in, const std::vector<SlotId>& slots);

}  // namespace st
