// Which products of a model are split among the ranks along the tensor axis, and how.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/program.h"

namespace st {

/// Dimension `dimension` consists of segments, each of which is cut into as many equal parts as there are ranks.
struct TensorCut {
  int32_t dimension = 0;
  Ints segments = {};
  bool operator==(const TensorCut&) const = default;
};

/// How a forward section is split.
struct TensorSplit {
  /// columns: by the columns of the weight, so that each rank has columns of the product. rows: by the rows of the weight, on such columns,
  /// so that the product is a sum over the ranks. Megatron-LM (Shoeybi et al., 2019): the first product of an MLP and of attention, and the
  /// last.
  /// vocabulary: an embedding of this rank's rows of the table, or a cross-entropy of such columns.
  enum class Kind : int32_t { none, columns, rows, vocabulary };
  std::vector<Kind> kinds;                                 // by node
  std::vector<std::vector<std::optional<TensorCut>>> cut;  // by node and output: how a value is cut that lies between the two
  std::map<SlotId, TensorCut> parameters;                  // those that are cut; the others are whole on each rank
};

/// Pairs products: those whose columns reach, through elementwise ops, heads and attention alone, only products that sum over them, or a
/// cross-entropy or the store of an output; and embeddings, if nothing reads their tables in another way. A vocabulary that cannot be cut
/// evenly stays whole. Throws invalid_argument, with the numbers, if such columns or heads cannot be cut into `ranks` equal parts.
///   like   a split program of the same model: only parameters that it cuts are cut; null: no such limit
TensorSplit split_products(const Program& program, const Section& forward, int32_t ranks, const Program* like = nullptr);

/// The parameter that a value is, also as its working copy or a cast of it; -1: none.
SlotId parameter_behind(const Program& program, const Graph& graph, Value v);
/// Whether a node multiplies its first input with a two-dimensional parameter.
bool is_weight_product(const Program& program, const Graph& graph, const Node& node);

}  // namespace st
