#include "passes/product_chain.h"

#include <algorithm>
#include <set>

#include "passes/rewrite.h"

namespace st {

std::vector<int32_t> ProductChain::nodes() const {
  std::vector<int32_t> all;
  for (const int32_t n : {product, bias, activation, derivative, addition, sums})
    if (n >= 0) all.push_back(n);
  all.insert(all.end(), views.begin(), views.end());
  return all;
}

namespace {

class ChainFinder {
 public:
  ChainFinder(const Program& program, const Section& section)
      : program_(program), graph_(section.graph), uses_(uses_of(program, section)), readers_(section.graph.nodes.size()) {
    for (int32_t n = 0; n < graph_.size(); ++n)
      for (const Value v : graph_[n].in) readers_[static_cast<size_t>(v.node)].push_back(n);
  }

  std::map<int32_t, ProductChain> run() {
    std::map<int32_t, ProductChain> chains;
    for (int32_t n = 0; n < graph_.size(); ++n) {
      if (!is_product(n)) continue;
      const ProductChain chain = chain_of(n);
      const auto nodes = chain.nodes();
      if (nodes.size() == 1) continue;
      taken_.insert(nodes.begin(), nodes.end());
      chains.emplace(chain.last(), chain);
    }
    return chains;
  }

 private:
  bool is_product(int32_t n) const {
    const Node& node = graph_[n];
    if (node.when != When::every) return false;
    return node.op == Op::linear || (node.op == Op::matmul && !node.attrs.flag("transpose_a") && graph_.type(node.in[1]).shape.rank() == 2);
  }

  ProductChain chain_of(int32_t product) const {
    ProductChain chain{.product = product, .views = {}, .y = {product, 0}, .pre_activation = {}, .residual = {}};
    if (graph_[product].op == Op::matmul) take_bias(chain);
    take_activation(chain);
    if (chain.activation < 0) take_derivative(chain);
    take_residual(chain);
    take_sums(chain);
    return chain;
  }

  void take_bias(ProductChain& chain) const {
    const int32_t n = only_reader(chain.y);
    if (!may_join(n, Op::add) || graph_[n].in[0] != chain.y) return;
    const Type &bias = graph_.type(graph_[n].in[1]), &y = graph_.type(chain.y);
    if (bias.shape.rank() != 1 || bias.shape[0] != y.shape.last() || bias.dtype != y.dtype) return;
    if (program_.boundary_of(graph_[chain.product].region) != program_.boundary_of(graph_[n].region)) return;
    chain.bias = n;
    chain.y = {n, 0};
  }

  /// The first activation of the product. Whoever else reads the pre-activation must come after it, since both are made at once.
  void take_activation(ProductChain& chain) const {
    for (const int32_t reader : readers_of(chain.y)) {
      const Behind behind = see_through(chain.y, reader);
      if (!may_join(behind.node, Op::gelu) && !may_join(behind.node, Op::relu) && !may_join(behind.node, Op::silu)) continue;
      if (!others_read_after(chain.y, reader, behind.node)) return;
      chain.pre_activation = chain.y;
      chain.keeps_pre_activation = uses_of_value(chain.y) > 1;
      chain.pre_activation_reader = reader;
      chain.activation = behind.node;
      return join(chain, behind);
    }
  }

  void take_derivative(ProductChain& chain) const {
    const Behind behind = see_through(chain.y, only_reader(chain.y));
    const int32_t n = behind.node;
    if (!may_join(n, Op::gelu_backward) && !may_join(n, Op::relu_backward) && !may_join(n, Op::silu_backward)) return;
    if (graph_[n].in[1] != behind.seen || graph_[n].in[0] == behind.seen) return;
    chain.derivative = n;
    join(chain, behind);
  }

  void take_residual(ProductChain& chain) const {
    const Behind behind = see_through(chain.y, only_reader(chain.y));
    const int32_t n = behind.node;
    if (!may_join(n, Op::add)) return;
    const Value other = graph_[n].in[graph_[n].in[0] == behind.seen ? 1 : 0];
    if (other == behind.seen || graph_.type(other) != graph_.type(behind.seen)) return;
    if (chain.keeps_pre_activation && !others_read_after(chain.pre_activation, chain.pre_activation_reader, n)) return;
    chain.addition = n;
    chain.residual = other;
    join(chain, behind);
  }

  /// Over everything but columns. A single column is summed in another order.
  void take_sums(ProductChain& chain) const {
    const int64_t columns = graph_.type(chain.y).shape.last();
    if (columns < 2) return;
    std::vector<Value> seen = {chain.y};
    for (size_t i = 0; i < seen.size(); ++i)
      for (const int32_t n : readers_of(seen[i])) {
        if (keeps_columns(n)) seen.push_back({n, 0});
        if (!may_join(n, Op::sum) || !leaves_columns(graph_[n], graph_.type(seen[i]).shape.rank())) continue;
        if (graph_[n].out[0].shape != Shape{columns}) continue;
        chain.sums = n;
        return;
      }
  }

  /// The node that a value comes to, past the reshapes of its rows that nothing else reads.
  struct Behind {
    int32_t node;
    Value seen;
    std::vector<int32_t> views;
  };
  Behind see_through(Value v, int32_t reader) const {
    Behind behind{.node = reader, .seen = v, .views = {}};
    while (behind.node >= 0 && keeps_columns(behind.node)) {
      behind.views.push_back(behind.node);
      behind.seen = {behind.node, 0};
      behind.node = only_reader(behind.seen);
    }
    return behind;
  }

  static void join(ProductChain& chain, const Behind& behind) {
    chain.views.insert(chain.views.end(), behind.views.begin(), behind.views.end());
    chain.y = {behind.node, 0};
  }

  bool keeps_columns(int32_t n) const {
    const Node& node = graph_[n];
    if (node.op != Op::reshape) return false;
    const Shape &from = graph_.type(node.in[0]).shape, &to = node.out[0].shape;
    return from.rank() > 0 && to.rank() > 0 && from.last() == to.last();
  }

  static bool leaves_columns(const Node& sum, int32_t rank) {
    std::set<int32_t> axes;
    for (const int64_t axis : sum.attrs.ints("axes")) axes.insert(normalize_axis("sum", axis, rank));
    return static_cast<int32_t>(axes.size()) == rank - 1 && !axes.contains(rank - 1);
  }

  bool may_join(int32_t n, Op op) const { return n >= 0 && graph_[n].op == op && graph_[n].when == When::every && !taken_.contains(n); }

  int32_t uses_of_value(Value v) const { return uses_[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]; }

  const std::vector<int32_t>& readers_of(Value v) const { return readers_[static_cast<size_t>(v.node)]; }

  /// -1: several read it, or it is an output.
  int32_t only_reader(Value v) const { return uses_of_value(v) == 1 && readers_of(v).size() == 1 ? readers_of(v)[0] : -1; }

  bool others_read_after(Value v, int32_t reader, int32_t last) const {
    return std::ranges::all_of(readers_of(v), [&](int32_t n) { return n == reader || n > last; });
  }

  const Program& program_;
  const Graph& graph_;
  std::vector<std::vector<int32_t>> uses_;
  std::vector<std::vector<int32_t>> readers_;  // by node: all in a chain have one output
  std::set<int32_t> taken_;
};

}  // namespace

std::map<int32_t, ProductChain> product_chains(const Program& program, const Section& section) {
  return ChainFinder(program, section).run();
}

}  // namespace st
