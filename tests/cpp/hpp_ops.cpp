// Every function of scaletrain::ops makes the node that its op makes by name and JSON: with defaults left out, and with every argument.
#include <functional>
#include <sstream>

#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

/// Inputs of the calls below.
struct Parts {
  explicit Parts(const Context& context) : graph(context) {}

  /// Compares the node of `typed`, which was just made, with that of the op made by name.
  void same(const std::string& op, const Value& typed, const std::vector<Value>& inputs, const std::string& json = "") const {
    EXPECT_GT(typed.id(), 0) << op;
    const std::string made = last_node();
    EXPECT_EQ(made.find(op + "("), 0U) << made;
    graph.op(op, inputs, json);
    EXPECT_EQ(last_node(), made) << op << " " << json;
  }
  /// The node's text without its number.
  std::string last_node() const {
    std::istringstream lines(graph.text());
    std::string last;
    for (std::string text; std::getline(lines, text);)
      if (text.rfind("  %", 0) == 0) last = text.substr(text.find(" = ") + 3);
    return last;
  }

  Graph graph;
  Value x = graph.input("x", DType::f32, {kBatch, 4, 6});
  Value y = graph.input("y", DType::f32, {kBatch, 4, 6});
  Value heads = graph.input("heads", DType::f32, {kBatch, 5, 2, 8});
  Value tokens = graph.input("tokens", DType::i32, {kBatch, 4});
  Value rows = graph.input("rows", DType::f32, {kBatch, 4});
  Value square = graph.parameter("square", {6, 6}, Init::normal, 1);
  Value line = graph.parameter("line", {6}, Init::ones, 0);
};

TEST_F(Hpp, OpsOfArithmeticAreThoseOfTheirNameAndJson) {
  const Context context;
  const Parts p(context);
  p.same("fill", ops::fill(p.graph, {2, 3}, 4, DType::f64), {}, R"({"shape": [2, 3], "value": 4, "dtype": "f64"})");
  p.same("fill", ops::fill(p.graph, {2, 3}), {}, R"({"shape": [2, 3], "value": 0})");
  p.same("matmul", matmul(p.x, p.square), {p.x, p.square});
  p.same("matmul", ops::matmul(p.x, p.square, false, true), {p.x, p.square}, R"({"transpose_b": true})");
  p.same("linear", ops::linear(p.x, p.square, p.line, true), {p.x, p.square, p.line}, R"({"transpose_weight": true})");
  p.same("add", ops::add(p.x, p.y), {p.x, p.y});
  p.same("sub", ops::sub(p.x, p.y), {p.x, p.y});
  p.same("mul", ops::mul(p.x, p.y), {p.x, p.y});
  p.same("div", ops::div(p.x, p.y), {p.x, p.y});
  p.same("minimum", ops::minimum(p.x, p.y), {p.x, p.y});
  p.same("maximum", ops::maximum(p.x, p.y), {p.x, p.y});
  p.same("pow", ops::pow(p.x, p.y), {p.x, p.y});
  p.same("compare", ops::compare(p.x, p.y, "less"), {p.x, p.y}, R"({"test": "less"})");
  p.same("compare", ops::compare(p.x, p.y), {p.x, p.y});
  p.same("affine", ops::affine(p.x, 2, 3), {p.x}, R"({"scale": 2, "shift": 3})");
  p.same("affine", ops::affine(p.x), {p.x});
  p.same("exp", ops::exp(p.x), {p.x});
  p.same("log", ops::log(p.x), {p.x});
  p.same("sqrt", ops::sqrt(p.x), {p.x});
  p.same("abs", ops::abs(p.x), {p.x});
  p.same("neg", ops::neg(p.x), {p.x});
  p.same("sign", ops::sign(p.x), {p.x});
  p.same("clamp", ops::clamp(p.x, -1, 2), {p.x}, R"({"low": -1, "high": 2})");
  p.same("clamp", ops::clamp(p.x), {p.x});
  p.same("cast", ops::cast(p.x, DType::bf16), {p.x}, R"({"dtype": "bf16"})");
}

TEST_F(Hpp, OpsOfNetworksAreThoseOfTheirNameAndJson) {
  const Context context;
  const Parts p(context);
  p.same("gelu", ops::gelu(p.x, "erf"), {p.x}, R"({"approximate": "erf"})");
  p.same("gelu", ops::gelu(p.x), {p.x});
  p.same("relu", ops::relu(p.x), {p.x});
  p.same("silu", ops::silu(p.x), {p.x});
  p.same("tanh", ops::tanh(p.x), {p.x});
  p.same("sigmoid", ops::sigmoid(p.x), {p.x});
  p.same("layer_norm", ops::layer_norm(p.x, p.line, p.line, 0.5), {p.x, p.line, p.line}, R"({"epsilon": 0.5})");
  p.same("layer_norm", ops::layer_norm(p.x, p.line, p.line), {p.x, p.line, p.line});
  p.same("rms_norm", ops::rms_norm(p.x, p.line, 0.5), {p.x, p.line}, R"({"epsilon": 0.5})");
  p.same("softmax", ops::softmax(p.x, 1), {p.x}, R"({"axis": 1})");
  p.same("softmax", ops::softmax(p.x), {p.x});
  p.same("log_softmax", ops::log_softmax(p.x, 1), {p.x}, R"({"axis": 1})");
  const std::vector<Value> qkv = {p.heads, p.heads, p.heads};
  p.same("attention", ops::attention(p.heads, p.heads, p.heads, false, 0.5), qkv, R"({"causal": false, "scale": 0.5})");
  p.same("attention", ops::attention(p.heads, p.heads, p.heads), qkv);
  p.same("rope", ops::rope(p.heads, 100, 3, true), {p.heads}, R"({"base": 100, "offset": 3, "inverse": true})");
  p.same("rope", ops::rope(p.heads), {p.heads});
  p.same("embedding", ops::embedding(p.square, p.tokens), {p.square, p.tokens});
  p.same("cross_entropy", ops::cross_entropy(p.x, p.tokens, p.rows, 3, 0.25, 0.5), {p.x, p.tokens, p.rows},
         R"({"ignore_index": 3, "label_smoothing": 0.25, "z_loss": 0.5})");
  p.same("cross_entropy", ops::cross_entropy(p.x, p.tokens), {p.x, p.tokens});
  p.same("bce_with_logits", ops::bce_with_logits(p.x, p.y), {p.x, p.y});
  p.same("mse", ops::mse(p.x, p.y, p.y), {p.x, p.y, p.y});
  p.same("mse", ops::mse(p.x, p.y), {p.x, p.y});
  p.same("huber", ops::huber(p.x, p.y, Value(), 2.5), {p.x, p.y}, R"({"delta": 2.5})");
}

TEST_F(Hpp, OpsOfShapesAreThoseOfTheirNameAndJson) {
  const Context context;
  const Parts p(context);
  const Value is_equal = ops::compare(p.x, p.y), picks = ops::argmax(p.x);
  p.same("where", ops::where(is_equal, p.x, p.y), {is_equal, p.x, p.y});
  p.same("gather", ops::gather(p.rows, picks, 1), {p.rows, picks}, R"({"axis": 1})");
  p.same("argmax", ops::argmax(p.x, 1, true), {p.x}, R"({"axis": 1, "keep_dims": true})");
  p.same("argmax", ops::argmax(p.x), {p.x});
  p.same("sum", ops::sum(p.x, {1, 2}, true), {p.x}, R"({"axes": [1, 2], "keep_dims": true})");
  p.same("sum", ops::sum(p.x), {p.x});
  p.same("mean", ops::mean(p.x, {0}), {p.x}, R"({"axes": [0]})");
  p.same("max", ops::max(p.x, {2}, true), {p.x}, R"({"axes": [2], "keep_dims": true})");
  p.same("reshape", ops::reshape(p.square, {4, 9}), {p.square}, R"({"shape": [4, 9]})");
  p.same("broadcast_to", ops::broadcast_to(p.line, {6, 6}), {p.line}, R"({"shape": [6, 6]})");
  p.same("transpose", ops::transpose(p.x, {0, 2, 1}), {p.x}, R"({"order": [0, 2, 1]})");
  p.same("slice", ops::slice(p.x, 1, 1, 3), {p.x}, R"({"axis": 1, "start": 1, "end": 3})");
  p.same("pad", ops::pad(p.x, 2, 1, 4), {p.x}, R"({"axis": 2, "before": 1, "after": 4})");
  p.same("concat", ops::concat({p.x, p.y}, 1), {p.x, p.y}, R"({"axis": 1})");
  p.same("concat", ops::concat({p.x, p.y}), {p.x, p.y});
}

TEST_F(Hpp, OpsGiveTheirFurtherResultsWhenTheyAreAskedFor) {
  const Context context;
  const Parts p(context);
  Value count, lse, deviation, mean, scores;
  const Value sum = ops::cross_entropy(p.x, p.tokens, Value(), -100, 0, 0, &count, &lse);
  EXPECT_NE(sum.id(), count.id());
  EXPECT_EQ(p.graph.info(count).dtype, DType::f64);
  EXPECT_EQ(p.graph.info(lse).dims, (std::vector<int64_t>{kBatch, 4}));
  ops::layer_norm(p.x, p.line, p.line, 1e-5, &mean, &deviation);
  EXPECT_NE(mean.id(), deviation.id());
  for (const Value& of_rows : {mean, deviation}) EXPECT_EQ(p.graph.info(of_rows).dims, (std::vector<int64_t>{kBatch, 4}));
  ops::attention(p.heads, p.heads, p.heads, true, 0, &scores);
  EXPECT_EQ(p.graph.info(scores).dims, (std::vector<int64_t>{kBatch, 2, 5}));
  for (const auto& loss : {ops::bce_with_logits, ops::mse}) {
    count = Value();
    loss(p.x, p.y, Value(), &count);
    EXPECT_TRUE(p.graph.info(count).dims.empty());
  }
  const auto pieces = ops::split(p.x, 2, {1, 2, 3});
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(p.graph.info(pieces[2]).dims, (std::vector<int64_t>{kBatch, 4, 3}));
}

TEST_F(Hpp, AnOpThatIsWrongThrowsItsOwnError) {
  const Context context;
  const auto refusal_of = [&](Status wanted, const std::function<void(const Parts&)>& call) {
    const Parts p(context);
    return refusal(wanted, [&] { call(p); });
  };
  using P = const Parts&;
  EXPECT_TRUE(has(refusal_of(Status::invalid_argument, [](P p) { matmul(p.x, p.x); }), "[batch, 4, 6]"));
  EXPECT_TRUE(has(refusal_of(Status::invalid_argument, [](P p) { ops::gelu(p.x, "fast"); }), "fast"));
  EXPECT_TRUE(has(refusal_of(Status::invalid_argument, [](P p) { ops::split(p.x, 2, {}); }), "room for 0"));
  EXPECT_TRUE(has(refusal_of(Status::invalid_argument, [](P) { ops::concat({}); }), "empty"));
  EXPECT_TRUE(has(refusal_of(Status::invalid_argument, [](P p) { ops::fill(p.graph, {2}, 1, DType{77}); }), "dtype is 77"));
  EXPECT_TRUE(has(refusal_of(Status::invalid_argument, [](P p) { ops::add(p.x, Value()); }), "value 0"));
  EXPECT_NE(refusal_of(Status::invalid_handle, [](P) { ops::exp(Value()); }), "");
}

}  // namespace
