#include "passes/fuse.h"

#include <map>

#include "passes/rewrite.h"

namespace st {
namespace {

/// The matmul that node `add` may swallow, or -1: x [.., K] times a matrix, plus a vector as long as the result's rows.
int32_t swallowed(const Program& program, const Section& section, const std::vector<std::vector<int32_t>>& uses, int32_t add) {
  const Graph& graph = section.graph;
  const Node& sum = graph[add];
  if (sum.op != Op::add) return -1;
  const Node& product = graph[sum.in[0].node];
  if (product.op != Op::matmul || product.attrs.flag("transpose_a") || uses[static_cast<size_t>(sum.in[0].node)][0] != 1) return -1;
  if (graph.type(product.in[1]).shape.rank() != 2) return -1;
  const Type& bias = graph.type(sum.in[1]);
  if (bias.shape.rank() != 1 || bias.shape[0] != product.out[0].shape.last() || bias.dtype != product.out[0].dtype) return -1;
  if (program.boundary_of(product.region) != program.boundary_of(sum.region)) return -1;
  return sum.in[0].node;
}

}  // namespace

void fuse(Program& program) {
  for (Section& section : program.sections) {
    const auto uses = uses_of(program, section);
    std::map<int32_t, int32_t> product_of;  // add -> its matmul
    std::vector<bool> gone(static_cast<size_t>(section.graph.size()), false);
    for (int32_t n = 0; n < section.graph.size(); ++n)
      if (const int32_t product = swallowed(program, section, uses, n); product >= 0) {
        product_of[n] = product;
        gone[static_cast<size_t>(product)] = true;
      }
    if (product_of.empty()) continue;

    Rewrite rewrite(program, section);
    for (int32_t n = 0; n < rewrite.old().size(); ++n) {
      if (gone[static_cast<size_t>(n)]) continue;
      const auto found = product_of.find(n);
      if (found == product_of.end()) {
        rewrite.keep(n);
        continue;
      }
      const Node& product = rewrite.old()[found->second];
      Node linear = rewrite.old()[n];
      linear.op = Op::linear;
      linear.in = {rewrite.at(product.in[0]), rewrite.at(product.in[1]), rewrite.at(linear.in[1])};
      linear.attrs = make_attrs(Op::linear, {{"transpose_weight", product.attrs.flag("transpose_b")}});
      rewrite.replace(n, linear);
    }
    rewrite.finish();
  }
}

}  // namespace st
