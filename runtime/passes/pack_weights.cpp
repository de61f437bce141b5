#include "passes/pack_weights.h"

#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "passes/rewrite.h"

namespace st {
namespace {

/// The node as a fused_linear, if it is a product of rows and a parameter as it lies.
bool make_fused_linear(const Program& program, const Graph& graph, Node& node) {
  const bool is_matmul = node.op == Op::matmul, is_linear = node.op == Op::linear;
  if (!is_matmul && !is_linear && node.op != Op::fused_linear) return false;
  const Node& weight = graph[node.in[1].node];
  if (program.parameter_of(weight) < 0 || program.slot(weight.reads[0]).role == Role::gathered) return false;
  if (weight.out[0].shape.rank() != 2 || (is_matmul && node.attrs.flag("transpose_a"))) return false;
  if (node.op == Op::fused_linear) return true;
  const bool transposed = node.attrs.flag(is_matmul ? "transpose_b" : "transpose_weight");
  node.attrs = make_attrs(Op::fused_linear, {{"transpose_weight", transposed},
                                             {"bias", is_linear},
                                             {"result", node.attrs.word("result")},
                                             {"tiles", node.attrs.ints("tiles")},
                                             {"library", node.attrs.word("library")}});
  node.op = Op::fused_linear;
  return true;
}

class Packing {
 public:
  Packing(Program& program, const PackingNeed& need) : program_(program), need_(need) {}

  void run(Section& section) {
    Rewrite rewrite(program_, section);
    for (int32_t n = 0; n < rewrite.old().size(); ++n) {
      Node node = rewrite.old()[n];
      const int64_t bytes = make_fused_linear(program_, rewrite.old(), node) ? need_(program_, section, node) : 0;
      if (bytes == 0) {
        rewrite.keep(n);
        continue;
      }
      const Value packed = packed_weight(rewrite, node, bytes);
      for (Value& v : node.in) v = rewrite.at(v);
      node.in.push_back(packed);
      node.attrs.set("packed", true);
      rewrite.replace(n, std::move(node));
    }
    rewrite.finish();
  }

 private:
  /// Which products can share: the layout is of the weight, its side, the tiles and, for all that we know, the rows and the result's type.
  using Key = std::tuple<SlotId, bool, int64_t, std::string, Ints>;

  Value packed_weight(Rewrite& rewrite, const Node& product, int64_t bytes) {
    const Graph& old = rewrite.old();
    const SlotId weight = old[product.in[1].node].reads[0], parameter = program_.parameter_of(old[product.in[1].node]);
    const bool transposed = product.attrs.flag("transpose_weight");
    const Shape& x = old.type(product.in[0]).shape;
    const int64_t rows = x.elements(0, x.rank() - 1);
    const Ints& tiles = product.attrs.ints("tiles");
    const std::string& result = product.attrs.word("result");
    auto [found, is_new] = slots_.emplace(Key{weight, transposed, rows, result, tiles}, -1);
    SlotId& slot = found->second;
    if (is_new) {
      slot = program_.add_slot({.name = free_name(parameter, transposed),
                                .type = {.dtype = DType::u8, .shape = {bytes}, .layout = {}},
                                .role = Role::packed,
                                .init = {},
                                .of = parameter});
      rewrite.append(
          {.op = Op::pack,
           .in = {rewrite.at(product.in[1])},
           .out = {},
           .reads = {},
           .writes = {slot},
           .attrs = make_attrs(Op::pack, {{"transpose_weight", transposed}, {"rows", rows}, {"result", result}, {"tiles", tiles}}),
           .region = product.region,
           .when = When::first});
    }
    const Type type = program_.slot(slot).type;
    check(type.shape[0] == bytes, "pack_weights: ", program_.slot(slot).name, " needs both ", type.shape[0], " and ", bytes, " bytes");
    const int32_t load = rewrite.append({.op = Op::load,
                                         .in = {},
                                         .out = {type},
                                         .reads = {slot},
                                         .writes = {},
                                         .attrs = make_attrs(Op::load, {}),
                                         .region = product.region});
    return {load, 0};
  }

  std::string free_name(SlotId parameter, bool transposed) const {
    return st::free_name(program_, text("packed.", program_.slot(parameter).name, transposed ? ".transposed" : ""));
  }

  Program& program_;
  const PackingNeed& need_;
  std::map<Key, SlotId> slots_;
};

}  // namespace

void pack_weights(Program& program, int64_t micro_batches, const PackingNeed& need) {
  if (micro_batches == 1) return;
  Packing packing(program, need);
  for (Section& section : program.sections)
    if (section.phase != Phase::update) packing.run(section);
}

}  // namespace st
