#include "passes/fuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "ir/build.h"
#include "passes/product_chain.h"
#include "passes/rewrite.h"

namespace st {
namespace {

/// Name of an activation in a fused_linear; "": it cannot be fused.
std::string fused_name_of(const Node& node) {
  switch (node.op) {
    case Op::gelu:
    case Op::gelu_backward:
      return "gelu_" + node.attrs.word("approximate");
    case Op::relu:
    case Op::relu_backward:
      return "relu";
    case Op::silu:
    case Op::silu_backward:
      return "silu";
    default:
      return "";
  }
}

bool is_transposed(const Node& product) { return product.attrs.flag(product.op == Op::linear ? "transpose_weight" : "transpose_b"); }

/// A view of rows that a reshape has cut otherwise.
Value with_type(Rewrite& rewrite, Value v, const Type& from, const Type& to, RegionId region) {
  if (from == to) return v;
  const Attrs attrs = reshape_attrs(to);
  return {rewrite.append({.op = Op::reshape, .in = {v}, .out = {to}, .reads = {}, .writes = {}, .attrs = attrs, .region = region}), 0};
}

/// Puts the one node in place of the chain's last; the product stands in its own scope still, where its weight is.
void append_fused(Rewrite& rewrite, const ProductChain& chain) {
  const Graph& old = rewrite.old();
  const Node& product = old[chain.product];
  const Type& type = product.out[0];
  const auto at = [&](Value v) { return rewrite.at(v); };
  const auto like_y = [&](Value v) { return with_type(rewrite, at(v), old.type(v), type, product.region); };
  Node fused = product;
  fused.op = Op::fused_linear;
  fused.in = {at(product.in[0]), at(product.in[1])};
  if (product.op == Op::linear) fused.in.push_back(at(product.in[2]));
  if (chain.bias >= 0) fused.in.push_back(at(old[chain.bias].in[1]));
  if (chain.derivative >= 0) fused.in.push_back(like_y(old[chain.derivative].in[0]));
  if (chain.residual) fused.in.push_back(like_y(chain.residual));
  if (chain.keeps_pre_activation) fused.out.push_back(type);
  if (chain.sums >= 0) fused.out.push_back(old[chain.sums].out[0]);
  const int32_t active = std::max(chain.activation, chain.derivative);
  fused.attrs = make_attrs(Op::fused_linear, {{"transpose_weight", is_transposed(product)},
                                              {"bias", product.op == Op::linear || chain.bias >= 0},
                                              {"activation", active < 0 ? std::string("none") : fused_name_of(old[active])},
                                              {"backward", chain.derivative >= 0},
                                              {"residual", static_cast<bool>(chain.residual)},
                                              {"pre_activation", chain.keeps_pre_activation},
                                              {"column_sums", chain.sums >= 0},
                                              {"result", product.attrs.word("result")}});
  const int32_t node = rewrite.append(std::move(fused));
  rewrite.map(chain.y, with_type(rewrite, {node, 0}, type, old.type(chain.y), product.region));
  int32_t output = 1;
  if (chain.keeps_pre_activation) rewrite.map(chain.pre_activation, {node, output++});
  if (chain.sums >= 0) rewrite.map({chain.sums, 0}, {node, output});
}

void append_linear(Rewrite& rewrite, const ProductChain& chain) {
  const Node& product = rewrite.old()[chain.product];
  Node linear = rewrite.old()[chain.bias];
  linear.op = Op::linear;
  linear.in = {rewrite.at(product.in[0]), rewrite.at(product.in[1]), rewrite.at(linear.in[1])};
  linear.attrs = make_attrs(Op::linear, {{"transpose_weight", is_transposed(product)}, {"result", product.attrs.word("result")}});
  rewrite.replace(chain.bias, linear);
}

}  // namespace

void fuse(Program& program) {
  for (Section& section : program.sections) {
    const std::map<int32_t, ProductChain> chains = product_chains(program, section);
    std::set<int32_t> gone;
    for (const auto& [last, chain] : chains)
      for (const int32_t n : chain.nodes())
        if (n != last) gone.insert(n);
    if (chains.empty()) continue;

    Rewrite rewrite(program, section);
    for (int32_t n = 0; n < rewrite.old().size(); ++n) {
      if (gone.contains(n)) continue;
      const auto found = chains.find(n);
      if (found == chains.end()) {
        rewrite.keep(n);
      } else if (found->second.is_linear()) {
        append_linear(rewrite, found->second);
      } else {
        append_fused(rewrite, found->second);
      }
    }
    rewrite.finish();
  }
}

}  // namespace st
