// Every function of scaletrain::ops makes the node that its op makes by name and JSON: with what is usual left out, and with all of it
// given.
#include <functional>

#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

/// The values that the rows below work on.
struct Parts {
  explicit Parts(const Context& context) : graph(context) {}
  Graph graph;
  Value x = graph.input("x", DType::f32, {kBatch, 4, 6});
  Value y = graph.input("y", DType::f32, {kBatch, 4, 6});
  Value heads = graph.input("heads", DType::f32, {kBatch, 5, 2, 8});
  Value tokens = graph.input("tokens", DType::i32, {kBatch, 4});
  Value rows = graph.input("rows", DType::f32, {kBatch, 4});
  Value square = graph.parameter("square", {6, 6}, Init::normal, 1);
  Value line = graph.parameter("line", {6}, Init::ones, 0);
};

struct Row {
  const char* name;
  std::function<Value(const Parts&)> typed;
  std::function<std::vector<Value>(const Parts&)> inputs;
  const char* json;
};

std::vector<Value> one(const Parts& p) { return {p.x}; }
std::vector<Value> two(const Parts& p) { return {p.x, p.y}; }
std::vector<Value> qkv(const Parts& p) { return {p.heads, p.heads, p.heads}; }

std::vector<Row> rows_of_arithmetic() {
  using P = const Parts&;
  return {
      {"fill",
       [](P p) {
         return ops::fill(p.graph, {2, 3}, 4, DType::f64);
       },
       [](P) { return std::vector<Value>(); }, R"({"shape": [2, 3], "value": 4, "dtype": "f64"})"},
      {"fill",
       [](P p) {
         return ops::fill(p.graph, {2, 3});
       },
       [](P) { return std::vector<Value>(); }, R"({"shape": [2, 3], "value": 0})"},
      {"matmul", [](P p) { return matmul(p.x, p.square); },
       [](P p) {
         return std::vector<Value>{p.x, p.square};
       },
       ""},
      {"matmul", [](P p) { return ops::matmul(p.x, p.square, false, true); },
       [](P p) {
         return std::vector<Value>{p.x, p.square};
       },
       R"({"transpose_b": true})"},
      {"linear", [](P p) { return ops::linear(p.x, p.square, p.line, true); },
       [](P p) {
         return std::vector<Value>{p.x, p.square, p.line};
       },
       R"({"transpose_weight": true})"},
      {"add", [](P p) { return ops::add(p.x, p.y); }, two, ""},
      {"sub", [](P p) { return ops::sub(p.x, p.y); }, two, ""},
      {"mul", [](P p) { return ops::mul(p.x, p.y); }, two, ""},
      {"div", [](P p) { return ops::div(p.x, p.y); }, two, ""},
      {"minimum", [](P p) { return ops::minimum(p.x, p.y); }, two, ""},
      {"maximum", [](P p) { return ops::maximum(p.x, p.y); }, two, ""},
      {"pow", [](P p) { return ops::pow(p.x, p.y); }, two, ""},
      {"compare", [](P p) { return ops::compare(p.x, p.y, "less"); }, two, R"({"test": "less"})"},
      {"compare", [](P p) { return ops::compare(p.x, p.y); }, two, ""},
      {"affine", [](P p) { return ops::affine(p.x, 2, 3); }, one, R"({"scale": 2, "shift": 3})"},
      {"affine", [](P p) { return ops::affine(p.x); }, one, ""},
      {"exp", [](P p) { return ops::exp(p.x); }, one, ""},
      {"log", [](P p) { return ops::log(p.x); }, one, ""},
      {"sqrt", [](P p) { return ops::sqrt(p.x); }, one, ""},
      {"abs", [](P p) { return ops::abs(p.x); }, one, ""},
      {"neg", [](P p) { return ops::neg(p.x); }, one, ""},
      {"sign", [](P p) { return ops::sign(p.x); }, one, ""},
      {"clamp", [](P p) { return ops::clamp(p.x, -1, 2); }, one, R"({"low": -1, "high": 2})"},
      {"clamp", [](P p) { return ops::clamp(p.x); }, one, ""},
      {"cast", [](P p) { return ops::cast(p.x, DType::bf16); }, one, R"({"dtype": "bf16"})"},
  };
}

std::vector<Row> rows_of_networks() {
  using P = const Parts&;
  const auto norm = [](P p) { return std::vector<Value>{p.x, p.line, p.line}; };
  return {
      {"gelu", [](P p) { return ops::gelu(p.x, "erf"); }, one, R"({"approximate": "erf"})"},
      {"gelu", [](P p) { return ops::gelu(p.x); }, one, ""},
      {"relu", [](P p) { return ops::relu(p.x); }, one, ""},
      {"silu", [](P p) { return ops::silu(p.x); }, one, ""},
      {"tanh", [](P p) { return ops::tanh(p.x); }, one, ""},
      {"sigmoid", [](P p) { return ops::sigmoid(p.x); }, one, ""},
      {"layer_norm", [](P p) { return ops::layer_norm(p.x, p.line, p.line, 0.5); }, norm, R"({"epsilon": 0.5})"},
      {"layer_norm", [](P p) { return ops::layer_norm(p.x, p.line, p.line); }, norm, ""},
      {"rms_norm", [](P p) { return ops::rms_norm(p.x, p.line, 0.5); },
       [](P p) {
         return std::vector<Value>{p.x, p.line};
       },
       R"({"epsilon": 0.5})"},
      {"softmax", [](P p) { return ops::softmax(p.x, 1); }, one, R"({"axis": 1})"},
      {"softmax", [](P p) { return ops::softmax(p.x); }, one, ""},
      {"log_softmax", [](P p) { return ops::log_softmax(p.x, 1); }, one, R"({"axis": 1})"},
      {"attention", [](P p) { return ops::attention(p.heads, p.heads, p.heads, false, 0.5); }, qkv, R"({"causal": false, "scale": 0.5})"},
      {"attention", [](P p) { return ops::attention(p.heads, p.heads, p.heads); }, qkv, ""},
      {"rope", [](P p) { return ops::rope(p.heads, 100, 3, true); }, [](P p) { return std::vector<Value>{p.heads}; },
       R"({"base": 100, "offset": 3, "inverse": true})"},
      {"rope", [](P p) { return ops::rope(p.heads); }, [](P p) { return std::vector<Value>{p.heads}; }, ""},
      {"embedding", [](P p) { return ops::embedding(p.square, p.tokens); },
       [](P p) {
         return std::vector<Value>{p.square, p.tokens};
       },
       ""},
      {"cross_entropy", [](P p) { return ops::cross_entropy(p.x, p.tokens, p.rows, 3, 0.25, 0.5); },
       [](P p) {
         return std::vector<Value>{p.x, p.tokens, p.rows};
       },
       R"({"ignore_index": 3, "label_smoothing": 0.25, "z_loss": 0.5})"},
      {"cross_entropy", [](P p) { return ops::cross_entropy(p.x, p.tokens); },
       [](P p) {
         return std::vector<Value>{p.x, p.tokens};
       },
       ""},
      {"bce_with_logits", [](P p) { return ops::bce_with_logits(p.x, p.y); }, two, ""},
      {"mse", [](P p) { return ops::mse(p.x, p.y, p.y); },
       [](P p) {
         return std::vector<Value>{p.x, p.y, p.y};
       },
       ""},
      {"mse", [](P p) { return ops::mse(p.x, p.y); }, two, ""},
      {"huber", [](P p) { return ops::huber(p.x, p.y, Value(), 2.5); }, two, R"({"delta": 2.5})"},
  };
}

std::vector<Row> rows_of_shapes() {
  using P = const Parts&;
  const auto gathered = [](P p) { return std::vector<Value>{p.rows, ops::argmax(p.x)}; };
  return {
      {"where", [](P p) { return ops::where(ops::compare(p.x, p.y), p.x, p.y); },
       [](P p) {
         return std::vector<Value>{p.graph.op("compare", {p.x, p.y}), p.x, p.y};
       },
       ""},
      {"gather", [](P p) { return ops::gather(p.rows, ops::argmax(p.x), 1); }, gathered, R"({"axis": 1})"},
      {"argmax", [](P p) { return ops::argmax(p.x, 1, true); }, one, R"({"axis": 1, "keep_dims": true})"},
      {"argmax", [](P p) { return ops::argmax(p.x); }, one, ""},
      {"sum",
       [](P p) {
         return ops::sum(p.x, {1, 2}, true);
       },
       one, R"({"axes": [1, 2], "keep_dims": true})"},
      {"sum", [](P p) { return ops::sum(p.x); }, one, ""},
      {"mean", [](P p) { return ops::mean(p.x, {0}); }, one, R"({"axes": [0]})"},
      {"max", [](P p) { return ops::max(p.x, {2}, true); }, one, R"({"axes": [2], "keep_dims": true})"},
      {"reshape",
       [](P p) {
         return ops::reshape(p.square, {4, 9});
       },
       [](P p) { return std::vector<Value>{p.square}; }, R"({"shape": [4, 9]})"},
      {"broadcast_to",
       [](P p) {
         return ops::broadcast_to(p.line, {6, 6});
       },
       [](P p) { return std::vector<Value>{p.line}; }, R"({"shape": [6, 6]})"},
      {"transpose",
       [](P p) {
         return ops::transpose(p.x, {0, 2, 1});
       },
       one, R"({"order": [0, 2, 1]})"},
      {"slice", [](P p) { return ops::slice(p.x, 1, 1, 3); }, one, R"({"axis": 1, "start": 1, "end": 3})"},
      {"pad", [](P p) { return ops::pad(p.x, 2, 1, 4); }, one, R"({"axis": 2, "before": 1, "after": 4})"},
      {"concat",
       [](P p) {
         return ops::concat({p.x, p.y}, 1);
       },
       two, R"({"axis": 1})"},
      {"concat",
       [](P p) {
         return ops::concat({p.x, p.y});
       },
       two, ""},
  };
}

TEST_F(Hpp, EveryOpIsTheOneOfItsNameAndJson) {
  const Context context;
  for (const auto& rows : {rows_of_arithmetic(), rows_of_networks(), rows_of_shapes()})
    for (const Row& row : rows) {
      const Parts typed(context), named(context);
      row.typed(typed);
      named.graph.op(row.name, row.inputs(named), row.json);
      EXPECT_EQ(typed.graph.text(), named.graph.text()) << row.name << " " << row.json;
      EXPECT_NE(typed.graph.text().find(std::string(row.name) + "("), std::string::npos) << row.name;
    }
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
  const auto message_of = [&](Status wanted, const auto& call) {
    const Parts p(context);
    try {
      call(p);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), wanted) << error.what();
      return std::string(error.what());
    }
    return std::string();
  };
  using P = const Parts&;
  EXPECT_NE(message_of(Status::invalid_argument, [](P p) { ops::softmax(p.x, 3); }).find("softmax"), std::string::npos);
  EXPECT_NE(message_of(Status::invalid_argument, [](P p) { matmul(p.x, p.x); }).find("[batch, 4, 6]"), std::string::npos);
  EXPECT_NE(message_of(Status::invalid_argument, [](P p) { ops::gelu(p.x, "fast"); }).find("fast"), std::string::npos);
  EXPECT_NE(message_of(Status::invalid_argument, [](P p) { ops::split(p.x, 2, {}); }).find("room for 0"), std::string::npos);
  EXPECT_NE(message_of(Status::invalid_argument, [](P) { ops::concat({}); }).find("empty"), std::string::npos);
  EXPECT_NE(message_of(Status::invalid_argument, [](P p) { ops::fill(p.graph, {2}, 1, DType{77}); }).find("dtype is 77"),
            std::string::npos);
  EXPECT_NE(message_of(Status::invalid_argument, [](P p) { ops::add(p.x, Value()); }).find("value 0"), std::string::npos);
  EXPECT_NE(message_of(Status::invalid_handle, [](P) { ops::exp(Value()); }), "");
}

}  // namespace
