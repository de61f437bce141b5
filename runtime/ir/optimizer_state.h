// The state that each optimizer keeps for a parameter: the slots of its op after the parameter, in order, initially zero.
#pragma once

#include <string_view>
#include <vector>

#include "ir/attrs.h"
#include "ir/graph.h"

namespace st {

constexpr int64_t kMomentBlock = 256;  // elements of adamw_8bit that share one scale

struct OptimizerState {
  std::string_view name;
  Type type;
};

/// adamw           moment1, moment2, with the parameter's type, as all that follow unless stated
/// adamw_8bit      moment1, moment2: u8 codes, each with its scales f32 [blocks of 256 elements]
/// sgd, muon       momentum (sgd: only if it is not 0)
/// lion            moment1
/// rmsprop         moment2, momentum (only if it is not 0), gradient_mean (only if centered)
/// adagrad         square_sum
/// adafactor       row_variance [..., rows], column_variance [..., columns] over the last two dimensions; with fewer than two, variance
/// Throws invalid_argument for an op that is not an optimizer and for muon on a parameter that is not a matrix.
std::vector<OptimizerState> optimizer_state(Op op, const Attrs& attrs, const Type& parameter);

/// Whether an update needs the whole parameter: the matrix (muon) or its rows and columns (adafactor). Other updates work on shards that
/// begin at multiples of kMomentBlock.
bool takes_whole(Op op);

}  // namespace st
