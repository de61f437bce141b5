#include "op_rows.h"

#include <cmath>

namespace st::test {
namespace {

constexpr std::array<int64_t, 2> kAxis0And1 = {0, 1}, kTurned = {1, 0};
constexpr std::array<int64_t, 1> kAxis1 = {1};
constexpr std::array<int64_t, 3> kSplitRows = {ST_BATCH, 2, 3}, kStacked = {7, 6, 4};

#define ONE_OPERAND(op)                                                                                    \
  OpRow {                                                                                                  \
#op, [](const Parts& p) { return st_op_##op(p, p.x); }, {&Parts::x }, nullptr, ST_F32, { ST_BATCH, 6 } \
  }
#define TWO_OPERANDS(op)                                                                                                             \
  OpRow {                                                                                                                            \
#op, [](const Parts& p) { return st_op_##op(p, p.x, p.vector); }, {&Parts::x, &Parts::vector }, nullptr, ST_F32, { ST_BATCH, 6 } \
  }

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
      {"fill",
       [](const Parts& p) { return st_op_fill(p, 2, kSizes.data(), 1.5, ST_F64); },
       {},
       R"({"shape": [2, 4], "value": 1.5, "dtype": "f64"})",
       ST_F64,
       {2, 4}},
      {"matmul",
       [](const Parts& p) { return st_op_matmul(p, p.matrix, p.x, 1, 1); },
       {&Parts::matrix, &Parts::x},
       R"({"transpose_a": true, "transpose_b": true})",
       ST_F32,
       {4, ST_BATCH}},
      {"linear",
       [](const Parts& p) { return st_op_linear(p, p.x, p.matrix, p.bias, 0); },
       {&Parts::x, &Parts::matrix, &Parts::bias},
       nullptr,
       ST_F32,
       {ST_BATCH, 4}},
      TWO_OPERANDS(add),
      TWO_OPERANDS(sub),
      TWO_OPERANDS(mul),
      TWO_OPERANDS(div),
      TWO_OPERANDS(minimum),
      TWO_OPERANDS(maximum),
      TWO_OPERANDS(pow),
      {"compare",
       [](const Parts& p) { return st_op_compare(p, p.x, p.y, "less_equal"); },
       {&Parts::x, &Parts::y},
       R"({"test": "less_equal"})",
       ST_BOOL,
       {ST_BATCH, 6}},
      {"where",
       [](const Parts& p) { return st_op_where(p, p.flags, p.x, p.vector); },
       {&Parts::flags, &Parts::x, &Parts::vector},
       nullptr,
       ST_F32,
       {ST_BATCH, 6}},
      {"affine",
       [](const Parts& p) { return st_op_affine(p, p.x, 2, -0.5); },
       {&Parts::x},
       R"({"scale": 2, "shift": -0.5})",
       ST_F32,
       {ST_BATCH, 6}},
      ONE_OPERAND(exp),
      ONE_OPERAND(log),
      ONE_OPERAND(sqrt),
      ONE_OPERAND(abs),
      ONE_OPERAND(neg),
      ONE_OPERAND(sign),
      {"clamp", [](const Parts& p) { return st_op_clamp(p, p.x, -1, INFINITY); }, {&Parts::x}, R"({"low": -1})", ST_F32, {ST_BATCH, 6}},
      {"gelu", [](const Parts& p) { return st_op_gelu(p, p.x, "erf"); }, {&Parts::x}, R"({"approximate": "erf"})", ST_F32, {ST_BATCH, 6}},
      ONE_OPERAND(relu),
      ONE_OPERAND(silu),
      ONE_OPERAND(tanh),
      ONE_OPERAND(sigmoid),
      {"cast", [](const Parts& p) { return st_op_cast(p, p.x, ST_BF16); }, {&Parts::x}, R"({"dtype": "bf16"})", ST_BF16, {ST_BATCH, 6}},
      {"dropout", [](const Parts& p) { return st_op_dropout(p, p.x, 0.25); }, {&Parts::x}, R"({"rate": 0.25})", ST_F32, {ST_BATCH, 6}},
      {"layer_norm",
       [](const Parts& p) { return st_op_layer_norm(p, p.x, p.vector, p.vector, 1e-6, nullptr, nullptr); },
       {&Parts::x, &Parts::vector, &Parts::vector},
       R"({"epsilon": 1e-6})",
       ST_F32,
       {ST_BATCH, 6}},
      {"rms_norm",
       [](const Parts& p) { return st_op_rms_norm(p, p.x, p.vector, 1e-6, nullptr); },
       {&Parts::x, &Parts::vector},
       R"({"epsilon": 1e-6})",
       ST_F32,
       {ST_BATCH, 6}},
      {"softmax", [](const Parts& p) { return st_op_softmax(p, p.x, 1); }, {&Parts::x}, R"({"axis": 1})", ST_F32, {ST_BATCH, 6}},
      {"log_softmax", [](const Parts& p) { return st_op_log_softmax(p, p.x, 1); }, {&Parts::x}, R"({"axis": 1})", ST_F32, {ST_BATCH, 6}},
      {"attention",
       [](const Parts& p) { return st_op_attention(p, p.q, p.k, p.k, 0, 0.5, nullptr); },
       {&Parts::q, &Parts::k, &Parts::k},
       R"({"causal": false, "scale": 0.5})",
       ST_F32,
       {ST_BATCH, 3, 4, 2}},
      {"rope",
       [](const Parts& p) { return st_op_rope(p, p.q, 500, 3, 1); },
       {&Parts::q},
       R"({"base": 500, "offset": 3, "inverse": true})",
       ST_F32,
       {ST_BATCH, 3, 4, 2}},
      {"embedding",
       [](const Parts& p) { return st_op_embedding(p, p.matrix, p.picks); },
       {&Parts::matrix, &Parts::picks},
       nullptr,
       ST_F32,
       {ST_BATCH, 2, 4}},
      {"gather",
       [](const Parts& p) { return st_op_gather(p, p.x, p.picks, 1); },
       {&Parts::x, &Parts::picks},
       R"({"axis": 1})",
       ST_F32,
       {ST_BATCH, 2}},
      {"argmax",
       [](const Parts& p) { return st_op_argmax(p, p.x, 1, 1); },
       {&Parts::x},
       R"({"axis": 1, "keep_dims": true})",
       ST_I32,
       {ST_BATCH, 1}},
      {"cross_entropy",
       [](const Parts& p) { return st_op_cross_entropy(p, p.x, p.labels, p.weights, -1, 0.25, 0.5, nullptr, nullptr); },
       {&Parts::x, &Parts::labels, &Parts::weights},
       R"({"ignore_index": -1, "label_smoothing": 0.25, "z_loss": 0.5})",
       ST_F64,
       {}},
      {"bce_with_logits",
       [](const Parts& p) { return st_op_bce_with_logits(p, p.x, p.y, ST_NONE, nullptr); },
       {&Parts::x, &Parts::y},
       nullptr,
       ST_F64,
       {}},
      {"mse", [](const Parts& p) { return st_op_mse(p, p.x, p.y, p.y, nullptr); }, {&Parts::x, &Parts::y, &Parts::y}, nullptr, ST_F64, {}},
      {"huber",
       [](const Parts& p) { return st_op_huber(p, p.x, p.y, ST_NONE, 2.5, nullptr); },
       {&Parts::x, &Parts::y},
       R"({"delta": 2.5})",
       ST_F64,
       {}},
      {"sum",
       [](const Parts& p) { return st_op_sum(p, p.x, 1, kAxis1.data(), 1); },
       {&Parts::x},
       R"({"axes": [1], "keep_dims": true})",
       ST_F32,
       {ST_BATCH, 1}},
      {"mean", [](const Parts& p) { return st_op_mean(p, p.x, 2, kAxis0And1.data(), 0); }, {&Parts::x}, R"({"axes": [0, 1]})", ST_F32, {}},
      {"max", [](const Parts& p) { return st_op_max(p, p.x, 0, nullptr, 0); }, {&Parts::x}, nullptr, ST_F32, {}},
      {"reshape",
       [](const Parts& p) { return st_op_reshape(p, p.x, 3, kSplitRows.data()); },
       {&Parts::x},
       R"({"shape": [-1, 2, 3]})",
       ST_F32,
       {ST_BATCH, 2, 3}},
      {"broadcast_to",
       [](const Parts& p) { return st_op_broadcast_to(p, p.bias, 3, kStacked.data()); },
       {&Parts::bias},
       R"({"shape": [7, 6, 4]})",
       ST_F32,
       {7, 6, 4}},
      {"transpose",
       [](const Parts& p) { return st_op_transpose(p, p.matrix, 2, kTurned.data()); },
       {&Parts::matrix},
       R"({"order": [1, 0]})",
       ST_F32,
       {4, 6}},
      {"slice",
       [](const Parts& p) { return st_op_slice(p, p.x, 1, 2, 5); },
       {&Parts::x},
       R"({"axis": 1, "start": 2, "end": 5})",
       ST_F32,
       {ST_BATCH, 3}},
      {"pad",
       [](const Parts& p) { return st_op_pad(p, p.x, 1, 1, 2); },
       {&Parts::x},
       R"({"axis": 1, "before": 1, "after": 2})",
       ST_F32,
       {ST_BATCH, 9}},
      {"split",
       [](const Parts& p) {
         st_value pieces[2] = {0, 0};
         return st_op_split(p, p.x, 1, 2, kSizes.data(), 2, pieces);
       },
       {&Parts::x},
       R"({"axis": 1, "sizes": [2, 4]})",
       ST_F32,
       {ST_BATCH, 2}},
      {"concat",
       [](const Parts& p) {
         const std::array<st_value, 2> both = {p.x, p.y};
         return st_op_concat(p, 2, both.data(), 1);
       },
       {&Parts::x, &Parts::y},
       R"({"axis": 1})",
       ST_F32,
       {ST_BATCH, 12}},
  };
  return table;
}

}  // namespace st::test
