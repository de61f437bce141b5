// The typed wrappers of ops.h: each is the op of its name, with its attributes, and tells the shape that it makes.
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "small_run.h"

namespace {

using namespace st::test;

/// A graph with something of every kind that ops take.
struct Parts {
  explicit Parts(st_context* context) {
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
  st_value input(const char* name, st_dtype dtype, const std::vector<int64_t>& dims) {
    st_value value = 0;
    EXPECT_TRUE(works(st_graph_input(graph, name, dtype, static_cast<int32_t>(dims.size()), dims.data(), &value)));
    return value;
  }
  operator st_graph*() const { return graph; }

  HeldGraph graph;
  st_value x, y, matrix, vector, bias, flags, labels, weights, picks, q, k;
};

using Input = st_value Parts::*;
struct Row {
  const char* op;
  std::function<st_value(const Parts&)> wrapper;
  std::vector<Input> inputs;  // the same by st_graph_op
  const char* attributes;
  st_dtype dtype;
  std::vector<int64_t> dims;
};

constexpr std::array<int64_t, 2> kAxis0And1 = {0, 1}, kSizes = {2, 4}, kTurned = {1, 0};
constexpr std::array<int64_t, 1> kAxis1 = {1};
constexpr std::array<int64_t, 3> kSplitRows = {ST_BATCH, 2, 3}, kStacked = {7, 6, 4};

#define ONE_OPERAND(op)                                                                                    \
  Row {                                                                                                    \
#op, [](const Parts& p) { return st_op_##op(p, p.x); }, {&Parts::x }, nullptr, ST_F32, { ST_BATCH, 6 } \
  }
#define TWO_OPERANDS(op)                                                                                                             \
  Row {                                                                                                                              \
#op, [](const Parts& p) { return st_op_##op(p, p.x, p.vector); }, {&Parts::x, &Parts::vector }, nullptr, ST_F32, { ST_BATCH, 6 } \
  }

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
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
       [](const Parts& p) { return st_op_cross_entropy(p, p.x, p.labels, p.weights, -1, nullptr, nullptr); },
       {&Parts::x, &Parts::labels, &Parts::weights},
       R"({"ignore_index": -1})",
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

std::string text_of(st_graph* graph) {
  const char* text = nullptr;
  EXPECT_TRUE(works(st_graph_text(graph, &text)));
  return text;
}

class Ops : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(works(st_context_create(nullptr, context.out()))); }
  HeldContext context;
};

TEST_F(Ops, HaveAWrapperEachAndEachWrapperIsTestedHere) {
  std::ifstream file(ST_OPS_HEADER);
  std::stringstream header;
  header << file.rdbuf();
  const std::string text = header.str();
  const std::regex wrapper("static inline st_value st_op_(\\w+)\\(");
  std::set<std::string> declared, tested;
  for (std::sregex_iterator found(text.begin(), text.end(), wrapper), end; found != end; ++found) declared.insert((*found)[1]);
  for (const Row& row : rows()) tested.insert(row.op);
  EXPECT_GT(declared.size(), 45U);
  EXPECT_EQ(declared, tested);
}

TEST_F(Ops, MakeTheShapeThatTheRowTells) {
  for (const Row& row : rows()) {
    const Parts parts(context);
    const st_value value = row.wrapper(parts);
    auto info = filled(st_value_info_init);
    ASSERT_TRUE(works(st_graph_value(parts, value, &info))) << row.op;
    EXPECT_EQ(info.dtype, row.dtype) << row.op;
    EXPECT_EQ(std::vector<int64_t>(info.dims, info.dims + info.rank), row.dims) << row.op;
  }
}

TEST_F(Ops, ByTheirWrappersAreTheOpsByTheirNames) {
  for (const Row& row : rows()) {
    const Parts typed(context), named(context);
    const std::string before = text_of(named);
    row.wrapper(typed);
    std::vector<st_value> inputs, values(2);
    for (const Input input : row.inputs) inputs.push_back(named.*input);
    EXPECT_TRUE(works(st_graph_op(named, row.op, static_cast<int32_t>(inputs.size()), inputs.data(), row.attributes, 2, values.data())));
    EXPECT_EQ(text_of(typed), text_of(named)) << row.op;
    EXPECT_NE(text_of(named), before) << row.op;
  }
}

TEST_F(Ops, GiveFurtherResultsWhereTheyAreWanted) {
  const Parts p(context);
  st_value mean = 0, rstd = 0, lse = 0, count = 0;
  st_value pieces[3] = {0, 0, 9};
  EXPECT_GT(st_op_layer_norm(p, p.x, p.vector, p.vector, 1e-5, &mean, &rstd), 0);
  EXPECT_GT(st_op_attention(p, p.q, p.k, p.k, 1, 0, &lse), 0);
  EXPECT_GT(st_op_mse(p, p.x, p.y, ST_NONE, &count), 0);
  EXPECT_GT(st_op_split(p, p.x, 1, 2, kSizes.data(), 3, pieces), 0);
  EXPECT_EQ(pieces[2], 0) << "what is left of the room becomes 0";
  const auto dims_of = [&](st_value value) {
    auto info = filled(st_value_info_init);
    EXPECT_TRUE(works(st_graph_value(p, value, &info)));
    return std::vector<int64_t>(info.dims, info.dims + info.rank);
  };
  EXPECT_EQ(dims_of(mean), std::vector<int64_t>{ST_BATCH});
  EXPECT_EQ(dims_of(rstd), std::vector<int64_t>{ST_BATCH});
  EXPECT_NE(mean, rstd);
  EXPECT_EQ(dims_of(lse), (std::vector<int64_t>{ST_BATCH, 4, 3}));
  EXPECT_EQ(dims_of(count), std::vector<int64_t>{});
  EXPECT_EQ(dims_of(pieces[1]), (std::vector<int64_t>{ST_BATCH, 4}));
}

TEST_F(Ops, TakeDefaultsForNullWords) {
  const Parts typed(context), named(context);
  st_value value = 0;
  EXPECT_GT(st_op_gelu(typed, typed.x, nullptr), 0);
  EXPECT_GT(st_op_fill(typed, 2, kSizes.data(), 1, 0), 0);
  EXPECT_TRUE(works(st_graph_op(named, "gelu", 1, &named.x, nullptr, 1, &value)));
  EXPECT_TRUE(works(st_graph_op(named, "fill", 0, nullptr, R"({"shape": [2, 4], "value": 1})", 1, &value)));
  EXPECT_EQ(text_of(typed), text_of(named));
}

TEST_F(Ops, ThatAreWrongAreNamedWithTheirShapesAtModelCreate) {
  const Parts p(context);
  HeldModel model;
  st_value y = st_op_matmul(p, p.x, p.bias, 0, 0);  // wrong
  EXPECT_EQ(y, 0);
  y = st_op_gelu(p, y, nullptr);      // carries it on
  y = st_op_gelu(p, p.x, "perhaps");  // wrong too, but later
  EXPECT_EQ(y, 0);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_create(p, 0, model.out()), {"st_graph_apply", "matmul", "[4]"}));
  auto info = filled(st_error_info_init);
  EXPECT_TRUE(works(st_last_error_info(&info)));
  EXPECT_STREQ(info.op, "matmul");
}

TEST_F(Ops, WithoutAnInputThatIsNeededAreRefused) {
  for (const bool invalid : {true, false}) {
    const Parts p(context);
    EXPECT_EQ(st_op_mse(p, p.x, invalid ? 0 : ST_NONE, ST_NONE, nullptr), 0);
    EXPECT_NE(std::strstr(st_last_error(), invalid ? "value 0" : "ST_NONE"), nullptr) << st_last_error();
  }
  const Parts p(context);
  EXPECT_EQ(st_op_mse(p, p.x, p.y, 0, nullptr), 0) << "0 carries an error on; it is not the absence of an input";
  const Parts other(context);
  const st_value xs[] = {other.x, ST_NONE};
  EXPECT_EQ(st_op_concat(other, 2, xs, 1), 0);
}

}  // namespace
