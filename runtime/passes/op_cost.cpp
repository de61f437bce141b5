#include "passes/op_cost.h"

#include <algorithm>

namespace st {
namespace {

double elements(const Type& type) { return static_cast<double>(type.shape.elements()); }

double product_flops(const Graph& graph, const Node& node) {
  const Shape& a = graph.type(node.in[0]).shape;
  const bool transposed = node.op == Op::matmul && node.attrs.flag("transpose_a");
  return 2 * elements(node.out[0]) * static_cast<double>(transposed ? a[a.rank() - 2] : a.last());
}

/// Scores and their sum over the values; causal: of the keys that a query sees.
double attention_flops(const Graph& graph, const Node& node) {
  const double queries = static_cast<double>(graph.type(node.in[0]).shape[1]), keys = static_cast<double>(graph.type(node.in[1]).shape[1]);
  if (queries == 0) return 0;
  const double seen = node.attrs.flag("causal") ? std::max(0.0, keys - (queries - 1) / 2) : keys;
  return 4 * elements(node.out[0]) * seen;
}

}  // namespace

OpCost cost_of(const Graph& graph, const Node& node) {
  switch (node.op) {
    case Op::matmul:
    case Op::linear:
    case Op::fused_linear:
      return {.flops = product_flops(graph, node)};
    case Op::attention:
      return {.flops = attention_flops(graph, node)};
    default:
      break;
  }
  if (is_view(node.op) || node.op == Op::load) return {};
  OpCost cost;
  for (const Value v : node.in) cost.bytes += static_cast<double>(graph.type(v).bytes());
  for (const Type& type : node.out) cost.bytes += static_cast<double>(type.bytes());
  return cost;
}

}  // namespace st
