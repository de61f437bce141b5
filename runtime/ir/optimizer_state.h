// What each optimizer keeps of a parameter: the slots of its op behind the parameter, in order, created zero.
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

/// adamw           moment1, moment2: as the parameter
/// adamw_8bit      moment1, moment2: u8 codes, each with its scales f32 [blocks of 256 elements]
/// sgd, muon       momentum (sgd: if there is any)
/// lion            moment1
/// rmsprop         moment2, momentum (if there is any), gradient_mean (if centered)
/// adagrad         square_sum
/// adafactor       row_variance [..., rows], column_variance [..., columns] over the last two dimensions; below two, variance
/// Throws invalid_argument for an op that is no optimizer, and for a muon of what is no matrix.
std::vector<OptimizerState> optimizer_state(Op op, const Attrs& attrs, const Type& parameter);

/// Whether an update needs all of a parameter at once: of a matrix (muon) or its rows and columns (adafactor). Others may be of pieces that
/// begin at multiples of kMomentBlock.
bool takes_whole(Op op);

}  // namespace st
