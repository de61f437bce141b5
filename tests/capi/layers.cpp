// Layers: names and shapes of their parameters, their results, and that they learn.
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "small_run.h"

namespace {

using namespace st::test;

using Dims = std::vector<int64_t>;

class Layers : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(works(st_context_create(nullptr, context.out())));
    ASSERT_TRUE(works(st_graph_create(context, graph.out())));
    rows = input("rows", ST_F32, {ST_BATCH, 6});
    sequence = input("sequence", ST_F32, {ST_BATCH, 5, 8});
    tokens = input("tokens", ST_I32, {ST_BATCH, 5});
  }
  st_value input(const char* name, st_dtype dtype, const Dims& dims) {
    st_value value = 0;
    EXPECT_TRUE(works(st_graph_input(graph, name, dtype, static_cast<int32_t>(dims.size()), dims.data(), &value)));
    return value;
  }
  Dims dims_of(st_value value) {
    const auto info = filled(st_value_info_init, st_graph_value, graph, value);
    return Dims(info.dims, info.dims + info.rank);
  }
  std::map<std::string, Dims> parameters() {
    EXPECT_TRUE(works(st_model_create(graph, 3, model.out())));
    const auto count = asked<int64_t>(st_model_parameter_count, model);
    std::map<std::string, Dims> all;
    for (int64_t i = 0; i < count; ++i) {
      const auto info = filled(st_parameter_info_init, st_model_parameter, model, i);
      all[info.name] = Dims(info.dims, info.dims + info.rank);
    }
    return all;
  }
  std::vector<float> values_of(const char* name, const Dims& dims) {
    int64_t elements = 1;
    for (const int64_t dim : dims) elements *= dim;
    std::vector<float> values(static_cast<size_t>(elements));
    const st_view view = {ST_F32, static_cast<int32_t>(dims.size()), dims.data(), nullptr, values.data(), elements * 4};
    EXPECT_TRUE(works(st_model_get(model, name, &view)));
    return values;
  }

  HeldContext context;
  HeldGraph graph;
  HeldModel model;
  st_value rows = 0, sequence = 0, tokens = 0, y = 0;
};

using Named = std::map<std::string, Dims>;

TEST_F(Layers, LinearTakesAnyRankAndNamesItsParameters) {
  ASSERT_TRUE(works(st_layer_linear(graph, "a", rows, R"({"outputs": 3})", &y)));
  EXPECT_EQ(dims_of(y), (Dims{ST_BATCH, 3}));
  ASSERT_TRUE(works(st_layer_linear(graph, "b", sequence, R"({"outputs": 4, "bias": false, "init": "zeros"})", &y)));
  EXPECT_EQ(dims_of(y), (Dims{ST_BATCH, 5, 4}));
  const st_value vector = input("vector", ST_F32, {7});
  ASSERT_TRUE(works(st_layer_linear(graph, "c", vector, R"({"outputs": 2})", &y)));
  EXPECT_EQ(dims_of(y), (Dims{2}));
  EXPECT_EQ(parameters(), (Named{{"a.weight", {6, 3}}, {"a.bias", {3}}, {"b.weight", {8, 4}}, {"c.weight", {7, 2}}, {"c.bias", {2}}}));
  EXPECT_EQ(values_of("b.weight", {8, 4}), std::vector<float>(32, 0));
}

TEST_F(Layers, LinearBeginsAsItIsTold) {
  ASSERT_TRUE(works(st_layer_linear(graph, "xavier", rows, R"({"outputs": 500})", &y)));
  ASSERT_TRUE(works(st_layer_linear(graph, "kaiming", rows, R"({"outputs": 500, "init": "kaiming", "scale": 2})", &y)));
  ASSERT_TRUE(works(st_layer_linear(graph, "normal", rows, R"({"outputs": 500, "init": "normal", "scale": 0.5})", &y)));
  parameters();
  const auto deviation_of = [&](const char* name) {
    double sum = 0;
    for (const float value : values_of(name, {6, 500})) sum += static_cast<double>(value) * value;
    return std::sqrt(sum / 3000);
  };
  // 3000 samples give a deviation to about 1.3 %; the test allows five times that.
  EXPECT_NEAR(deviation_of("xavier.weight") / std::sqrt(2.0 / 506), 1, 0.065);
  EXPECT_NEAR(deviation_of("kaiming.weight") / (2 / std::sqrt(6.0)), 1, 0.065);
  EXPECT_NEAR(deviation_of("normal.weight") / 0.5, 1, 0.065);
}

TEST_F(Layers, AttentionHasOneProductForQueriesKeysAndValues) {
  ASSERT_TRUE(works(st_layer_attention(graph, "all", sequence, R"({"heads": 4})", &y)));
  EXPECT_EQ(dims_of(y), (Dims{ST_BATCH, 5, 8}));
  ASSERT_TRUE(works(st_layer_attention(graph, "grouped", y, R"({"heads": 4, "groups": 2, "rope": true, "bias": false})", &y)));
  EXPECT_EQ(dims_of(y), (Dims{ST_BATCH, 5, 8}));
  EXPECT_EQ(parameters(), (Named{{"all.qkv.weight", {8, 24}},
                                 {"all.qkv.bias", {24}},
                                 {"all.projection.weight", {8, 8}},
                                 {"all.projection.bias", {8}},
                                 {"grouped.qkv.weight", {8, 16}},
                                 {"grouped.projection.weight", {8, 8}}}));
}

TEST_F(Layers, EmbeddingNormAndMlpNameTheirParameters) {
  ASSERT_TRUE(works(st_layer_embedding(graph, "tokens", tokens, R"({"vocabulary": 11, "width": 4})", &y)));
  EXPECT_EQ(dims_of(y), (Dims{ST_BATCH, 5, 4}));
  ASSERT_TRUE(works(st_layer_norm(graph, "first", y, nullptr, &y)));
  ASSERT_TRUE(works(st_layer_norm(graph, "second", y, R"({"kind": "rms", "epsilon": 1e-6})", &y)));
  ASSERT_TRUE(works(st_layer_mlp(graph, "mlp", y, R"({"hidden": [16, 9], "outputs": 2, "activation": "relu"})", &y)));
  EXPECT_EQ(dims_of(y), (Dims{ST_BATCH, 5, 2}));
  ASSERT_TRUE(works(st_layer_dropout(graph, "drop", y, R"({"rate": 0.5})", &y)));
  EXPECT_EQ(dims_of(y), (Dims{ST_BATCH, 5, 2}));
  EXPECT_EQ(parameters(), (Named{{"tokens.weight", {11, 4}},
                                 {"first.gamma", {4}},
                                 {"first.beta", {4}},
                                 {"second.gamma", {4}},
                                 {"mlp.0.weight", {4, 16}},
                                 {"mlp.0.bias", {16}},
                                 {"mlp.1.weight", {16, 9}},
                                 {"mlp.1.bias", {9}},
                                 {"mlp.2.weight", {9, 2}},
                                 {"mlp.2.bias", {2}}}));
}

TEST_F(Layers, StandUnderTheOpenScopes) {
  ASSERT_TRUE(works(st_graph_scope(graph, "block.0")));
  ASSERT_TRUE(works(st_layer_linear(graph, "out", rows, R"({"outputs": 1, "bias": false})", &y)));
  ASSERT_TRUE(works(st_graph_scope_end(graph)));
  ASSERT_TRUE(works(st_layer_linear(graph, "out", rows, R"({"outputs": 1, "bias": false})", &y)));
  EXPECT_EQ(parameters(), (Named{{"block.0.out.weight", {6, 1}}, {"out.weight", {6, 1}}}));
}

TEST_F(Layers, RefuseOptionsAndShapesThatDoNotFit) {
  struct Case {
    st_status (*layer)(st_graph*, const char*, st_value, const char*, st_value*);
    st_value x;
    const char* options;
    std::initializer_list<std::string_view> words;
  };
  const Case cases[] = {
      {st_layer_linear, rows, R"({"output": 3})", {"st_layer_linear", "option \"output\" is unknown", "did you mean outputs"}},
      {st_layer_linear, rows, nullptr, {"outputs", "0"}},
      {st_layer_linear, rows, R"({"outputs": -3})", {"outputs", "-3"}},
      {st_layer_linear, rows, R"({"outputs": 4611686018427387904})", {"st_layer_linear"}},
      {st_layer_linear, rows, R"({"outputs": 3, "bias": 1})", {"bias", "true or false"}},
      {st_layer_linear, rows, R"({"outputs": 3, "init": "xaver"})", {"xaver", "did you mean xavier"}},
      {st_layer_linear, rows, R"({"outputs": 3)", {"linear options"}},
      {st_layer_linear, tokens, R"({"outputs": 3})", {"matmul", "i32"}},
      {st_layer_linear, 99, R"({"outputs": 3})", {"value 99"}},
      {st_layer_embedding, tokens, R"({"vocabulary": 3})", {"width"}},
      {st_layer_embedding, rows, R"({"vocabulary": 3, "width": 2})", {"embedding", "f32[batch, 6]"}},
      {st_layer_norm, rows, R"({"kind": "batch"})", {"batch", "layer, rms"}},
      {st_layer_attention, sequence, nullptr, {"heads"}},
      {st_layer_attention, sequence, R"({"heads": 3})", {"heads must divide C", "3 heads", "[batch, 5, 8]"}},
      {st_layer_attention, sequence, R"({"heads": 4, "groups": 3})", {"groups must divide heads", "3 groups", "4 heads"}},
      {st_layer_attention, sequence, R"({"heads": 8, "rope": true})", {"rope"}},
      {st_layer_attention, rows, R"({"heads": 2})", {"attention", "[batch, 6]"}},
      {st_layer_mlp, rows, R"({"hidden": [4, 0], "outputs": 1})", {"hidden", "0"}},
      {st_layer_mlp, rows, R"({"hidden": 4, "outputs": 1})", {"hidden", "list"}},
      {st_layer_mlp, rows, R"({"outputs": 1, "activation": "rely"})", {"rely", "did you mean relu"}},
      {st_layer_dropout, rows, R"({"rate": 1})", {"rate", "1"}},
  };
  for (const Case& wrong : cases) {
    HeldGraph fresh;  // a new graph, since a graph keeps its first error
    std::swap(fresh, graph);
    ASSERT_TRUE(works(st_graph_create(context, graph.out())));
    input("rows", ST_F32, {ST_BATCH, 6});
    input("sequence", ST_F32, {ST_BATCH, 5, 8});
    input("tokens", ST_I32, {ST_BATCH, 5});
    y = 7;
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, wrong.layer(graph, "layer", wrong.x, wrong.options, &y), wrong.words));
    EXPECT_EQ(y, 0);
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_create(graph, 0, model.out()), wrong.words));
  }
}

TEST_F(Layers, LinearIsTheProductWithItsWeightPlusItsBias) {
  const std::array<float, 12> weight = {1, 2, -1, 0, 3, 0.5, 2, 2, 2, -4, 0, 1};  // [6, 2]
  const std::array<float, 2> bias = {0.5, -2};
  const Dims weight_dims = {6, 2}, bias_dims = {2}, x_dims = {2, 6}, y_dims = {2, 2};
  graph.reset();  // a step requires every input of the graph
  ASSERT_TRUE(works(st_graph_create(context, graph.out())));
  rows = input("rows", ST_F32, {ST_BATCH, 6});
  const st_value target = input("target", ST_F32, {ST_BATCH, 2});
  ASSERT_TRUE(works(st_layer_linear(graph, "a", rows, R"({"outputs": 2})", &y)));
  ASSERT_TRUE(works(st_graph_loss(graph, st_op_mse(graph, y, target, ST_NONE, nullptr))));
  ASSERT_TRUE(works(st_model_create(graph, 0, model.out())));
  const auto view = [](const Dims& dims, const float* data, size_t bytes) {
    return st_view{ST_F32, static_cast<int32_t>(dims.size()), dims.data(), nullptr, const_cast<float*>(data), static_cast<int64_t>(bytes)};
  };
  const st_view weight_view = view(weight_dims, weight.data(), sizeof weight), bias_view = view(bias_dims, bias.data(), sizeof bias);
  ASSERT_TRUE(works(st_model_set(model, "a.weight", &weight_view)));
  ASSERT_TRUE(works(st_model_set(model, "a.bias", &bias_view)));

  const std::array<float, 12> x = {1, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6};
  // Row 0 selects the weight's first row, [1, 2]. Row 1 is [1*1 - 2*1 + 3*3 + 4*2 + 5*2 + 6*0, 1*2 + 2*0 + 3*0.5 + 4*2 - 5*4 + 6*1] = [26,
  // -2.5]. Then the bias is added.
  const std::array<float, 4> expected = {1.5, 0, 26.5, -4.5};
  auto report = filled(st_step_report_init);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 2, "lr": 0.001})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);
  const st_named_view batch[] = {{"rows", view(x_dims, x.data(), sizeof x)}, {"target", view(y_dims, expected.data(), sizeof expected)}};
  ASSERT_TRUE(works(st_trainer_step(trainer, 2, batch, &report)));
  EXPECT_EQ(report.loss, 0) << "all of it is exact in f32";
}

TEST_F(Layers, MakeATransformerThatLearnsToCopyTheTokenBefore) {
  constexpr int64_t kRows = 32, kTime = 5, kTokens = 7;
  graph.reset();
  ASSERT_TRUE(works(st_graph_create(context, graph.out())));
  const st_value in = input("x", ST_I32, {ST_BATCH, kTime}), out = input("y", ST_I32, {ST_BATCH, kTime});
  st_layer_embedding(graph, "tokens", in, R"({"vocabulary": 7, "width": 16, "scale": 0.5})", &y);
  st_value h = 0;
  st_graph_scope(graph, "block.0");
  st_layer_norm(graph, "attention_norm", y, R"({"kind": "rms"})", &h);
  st_layer_attention(graph, "attention", h, R"({"heads": 4, "groups": 2, "rope": true})", &h);
  y = st_op_add(graph, y, h);
  st_layer_norm(graph, "mlp_norm", y, nullptr, &h);
  st_layer_mlp(graph, "mlp", h, R"({"hidden": [32], "outputs": 16, "activation": "silu"})", &h);
  st_layer_dropout(graph, "dropout", h, R"({"rate": 0.01})", &h);
  y = st_op_add(graph, y, h);
  st_graph_scope_end(graph);
  st_layer_linear(graph, "head", y, R"({"outputs": 7})", &y);
  st_graph_loss(graph, st_op_cross_entropy(graph, y, out, ST_NONE, -100, 0, 0, nullptr, nullptr));
  ASSERT_TRUE(works(st_model_create(graph, 1, model.out())));

  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 32, "lr": 0.01, "warmup": 0, "weight_decay": 0})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);
  std::vector<int32_t> from(kRows * kTime), to(kRows * kTime, -100);  // the first token has no predecessor
  uint32_t random = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    random = random * 1664525U + 1013904223U;
    from[i] = static_cast<int32_t>((random >> 16) % kTokens);
    if (i % kTime != 0) to[i] = from[i - 1];
  }
  const Dims dims = {kRows, kTime};
  const auto bytes = static_cast<int64_t>(from.size() * sizeof from[0]);
  const st_named_view batch[] = {{"x", {ST_I32, 2, dims.data(), nullptr, from.data(), bytes}},
                                 {"y", {ST_I32, 2, dims.data(), nullptr, to.data(), bytes}}};
  auto report = filled(st_step_report_init);
  double first = 0;
  for (int step = 0; step < 150; ++step) {
    ASSERT_TRUE(works(st_trainer_step(trainer, 2, batch, &report)));
    if (step == 0) first = report.loss;
  }
  EXPECT_GT(first, 1) << "uniform guessing costs ln 7 = 1.95";
  EXPECT_LT(report.loss, 0.1);
}

}  // namespace
