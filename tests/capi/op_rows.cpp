#include "op_rows.h"

#include <cmath>
#include <utility>

namespace st::test {
namespace {

constexpr std::array<int64_t, 2> kAxis0And1 = {0, 1}, kTurned = {1, 0};
constexpr std::array<int64_t, 1> kAxis1 = {1};
constexpr std::array<int64_t, 3> kSplitRows = {ST_BATCH, 2, 3}, kStacked = {7, 6, 4};

OpRow row(const char* op, std::vector<st_value Parts::*> inputs, const char* attributes, st_dtype dtype, std::vector<int64_t> dims,
          std::function<st_value(const Parts&)> wrapper) {
  return {op, std::move(wrapper), std::move(inputs), attributes, dtype, std::move(dims)};
}

#define ONE_OPERAND(op) row(#op, {&Parts::x}, nullptr, ST_F32, {ST_BATCH, 6}, [](const Parts& p) { return st_op_##op(p, p.x); })
#define TWO_OPERANDS(op) \
  row(#op, {&Parts::x, &Parts::vector}, nullptr, ST_F32, {ST_BATCH, 6}, [](const Parts& p) { return st_op_##op(p, p.x, p.vector); })

}  // namespace

Parts::Parts(st_context* context) {
  EXPECT_TRUE(works(st_graph_create(context, graph.out())));
  x = input("x", ST_F32, {ST_BATCH, 6});
  y = input("y", ST_F32, {ST_BATCH, 6});
  matrix = input("matrix", ST_F32, {6, 4});
  vector = input("vector", ST_F32, {6});
  bias = input("bias", ST_F32, {4});
  flags = input("flags", ST_BOOL, {ST_BATCH, 6});
  labels = input("labels", ST_I32, {ST_BATCH});
  weights = input("weights", ST_F32, {ST_BATCH});
  picks = input("picks", ST_I32, {ST_BATCH, 2});
  q = input("q", ST_F32, {ST_BATCH, 3, 4, 2});
  k = input("k", ST_F32, {ST_BATCH, 3, 2, 2});
}

st_value Parts::input(const char* name, st_dtype dtype, const std::vector<int64_t>& dims) {
  st_value value = 0;
  EXPECT_TRUE(works(st_graph_input(graph, name, dtype, static_cast<int32_t>(dims.size()), dims.data(), &value)));
  return value;
}

const std::vector<OpRow>& op_rows() {
  static const std::vector<OpRow> table = {
      row("fill", {}, R"({"shape": [2, 4], "value": 1.5, "dtype": "f64"})", ST_F64, {2, 4},
          [](const Parts& p) { return st_op_fill(p, 2, kSizes.data(), 1.5, ST_F64); }),
      row("matmul", {&Parts::matrix, &Parts::x}, R"({"transpose_a": true, "transpose_b": true})", ST_F32, {4, ST_BATCH},
          [](const Parts& p) { return st_op_matmul(p, p.matrix, p.x, 1, 1); }),
      row("linear", {&Parts::x, &Parts::matrix, &Parts::bias}, nullptr, ST_F32, {ST_BATCH, 4},
          [](const Parts& p) { return st_op_linear(p, p.x, p.matrix, p.bias, 0); }),
      TWO_OPERANDS(add),
      TWO_OPERANDS(sub),
      TWO_OPERANDS(mul),
      TWO_OPERANDS(div),
      TWO_OPERANDS(minimum),
      TWO_OPERANDS(maximum),
      TWO_OPERANDS(pow),
      row("compare", {&Parts::x, &Parts::y}, R"({"test": "less_equal"})", ST_BOOL, {ST_BATCH, 6},
          [](const Parts& p) { return st_op_compare(p, p.x, p.y, "less_equal"); }),
      row("where", {&Parts::flags, &Parts::x, &Parts::vector}, nullptr, ST_F32, {ST_BATCH, 6},
          [](const Parts& p) { return st_op_where(p, p.flags, p.x, p.vector); }),
      row("affine", {&Parts::x}, R"({"scale": 2, "shift": -0.5})", ST_F32, {ST_BATCH, 6},
          [](const Parts& p) { return st_op_affine(p, p.x, 2, -0.5); }),
      ONE_OPERAND(exp),
      ONE_OPERAND(log),
      ONE_OPERAND(sqrt),
      ONE_OPERAND(abs),
      ONE_OPERAND(neg),
      ONE_OPERAND(sign),
      row("clamp", {&Parts::x}, R"({"low": -1})", ST_F32, {ST_BATCH, 6}, [](const Parts& p) { return st_op_clamp(p, p.x, -1, INFINITY); }),
      row("gelu", {&Parts::x}, R"({"approximate": "erf"})", ST_F32, {ST_BATCH, 6},
          [](const Parts& p) { return st_op_gelu(p, p.x, "erf"); }),
      ONE_OPERAND(relu),
      ONE_OPERAND(silu),
      ONE_OPERAND(tanh),
      ONE_OPERAND(sigmoid),
      row("cast", {&Parts::x}, R"({"dtype": "bf16"})", ST_BF16, {ST_BATCH, 6}, [](const Parts& p) { return st_op_cast(p, p.x, ST_BF16); }),
      row("dropout", {&Parts::x}, R"({"rate": 0.25})", ST_F32, {ST_BATCH, 6}, [](const Parts& p) { return st_op_dropout(p, p.x, 0.25); }),
      row("layer_norm", {&Parts::x, &Parts::vector, &Parts::vector}, R"({"epsilon": 1e-6})", ST_F32, {ST_BATCH, 6},
          [](const Parts& p) { return st_op_layer_norm(p, p.x, p.vector, p.vector, 1e-6, nullptr, nullptr); }),
      row("rms_norm", {&Parts::x, &Parts::vector}, R"({"epsilon": 1e-6})", ST_F32, {ST_BATCH, 6},
          [](const Parts& p) { return st_op_rms_norm(p, p.x, p.vector, 1e-6, nullptr); }),
      row("softmax", {&Parts::x}, R"({"axis": 1})", ST_F32, {ST_BATCH, 6}, [](const Parts& p) { return st_op_softmax(p, p.x, 1); }),
      row("log_softmax", {&Parts::x}, R"({"axis": 1})", ST_F32, {ST_BATCH, 6}, [](const Parts& p) { return st_op_log_softmax(p, p.x, 1); }),
      row("attention", {&Parts::q, &Parts::k, &Parts::k}, R"({"causal": false, "scale": 0.5})", ST_F32, {ST_BATCH, 3, 4, 2},
          [](const Parts& p) { return st_op_attention(p, p.q, p.k, p.k, 0, 0.5, nullptr); }),
      row("rope", {&Parts::q}, R"({"base": 500, "offset": 3, "inverse": true})", ST_F32, {ST_BATCH, 3, 4, 2},
          [](const Parts& p) { return st_op_rope(p, p.q, 500, 3, 1); }),
      row("embedding", {&Parts::matrix, &Parts::picks}, nullptr, ST_F32, {ST_BATCH, 2, 4},
          [](const Parts& p) { return st_op_embedding(p, p.matrix, p.picks); }),
      row("gather", {&Parts::x, &Parts::picks}, R"({"axis": 1})", ST_F32, {ST_BATCH, 2},
          [](const Parts& p) { return st_op_gather(p, p.x, p.picks, 1); }),
      row("argmax", {&Parts::x}, R"({"axis": 1, "keep_dims": true})", ST_I32, {ST_BATCH, 1},
          [](const Parts& p) { return st_op_argmax(p, p.x, 1, 1); }),
      row("cross_entropy", {&Parts::x, &Parts::labels, &Parts::weights}, R"({"ignore_index": -1, "label_smoothing": 0.25, "z_loss": 0.5})",
          ST_F64, {}, [](const Parts& p) { return st_op_cross_entropy(p, p.x, p.labels, p.weights, -1, 0.25, 0.5, nullptr, nullptr); }),
      row("bce_with_logits", {&Parts::x, &Parts::y}, nullptr, ST_F64, {},
          [](const Parts& p) { return st_op_bce_with_logits(p, p.x, p.y, ST_NONE, nullptr); }),
      row("mse", {&Parts::x, &Parts::y, &Parts::y}, nullptr, ST_F64, {},
          [](const Parts& p) { return st_op_mse(p, p.x, p.y, p.y, nullptr); }),
      row("huber", {&Parts::x, &Parts::y}, R"({"delta": 2.5})", ST_F64, {},
          [](const Parts& p) { return st_op_huber(p, p.x, p.y, ST_NONE, 2.5, nullptr); }),
      row("sum", {&Parts::x}, R"({"axes": [1], "keep_dims": true})", ST_F32, {ST_BATCH, 1},
          [](const Parts& p) { return st_op_sum(p, p.x, 1, kAxis1.data(), 1); }),
      row("mean", {&Parts::x}, R"({"axes": [0, 1]})", ST_F32, {},
          [](const Parts& p) { return st_op_mean(p, p.x, 2, kAxis0And1.data(), 0); }),
      row("max", {&Parts::x}, nullptr, ST_F32, {}, [](const Parts& p) { return st_op_max(p, p.x, 0, nullptr, 0); }),
      row("reshape", {&Parts::x}, R"({"shape": [-1, 2, 3]})", ST_F32, {ST_BATCH, 2, 3},
          [](const Parts& p) { return st_op_reshape(p, p.x, 3, kSplitRows.data()); }),
      row("broadcast_to", {&Parts::bias}, R"({"shape": [7, 6, 4]})", ST_F32, {7, 6, 4},
          [](const Parts& p) { return st_op_broadcast_to(p, p.bias, 3, kStacked.data()); }),
      row("transpose", {&Parts::matrix}, R"({"order": [1, 0]})", ST_F32, {4, 6},
          [](const Parts& p) { return st_op_transpose(p, p.matrix, 2, kTurned.data()); }),
      row("slice", {&Parts::x}, R"({"axis": 1, "start": 2, "end": 5})", ST_F32, {ST_BATCH, 3},
          [](const Parts& p) { return st_op_slice(p, p.x, 1, 2, 5); }),
      row("pad", {&Parts::x}, R"({"axis": 1, "before": 1, "after": 2})", ST_F32, {ST_BATCH, 9},
          [](const Parts& p) { return st_op_pad(p, p.x, 1, 1, 2); }),
      row("split", {&Parts::x}, R"({"axis": 1, "sizes": [2, 4]})", ST_F32, {ST_BATCH, 2},
          [](const Parts& p) {
            st_value pieces[2] = {0, 0};
            return st_op_split(p, p.x, 1, 2, kSizes.data(), 2, pieces);
          }),
      row("concat", {&Parts::x, &Parts::y}, R"({"axis": 1})", ST_F32, {ST_BATCH, 12},
          [](const Parts& p) {
            const std::array<st_value, 2> both = {p.x, p.y};
            return st_op_concat(p, 2, both.data(), 1);
          }),
  };
  return table;
}

}  // namespace st::test
