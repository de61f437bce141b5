// A graph may be built without checking any status: st_model_create reports the first error.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "graph_of_x.h"
#include "small_run.h"

namespace {

using namespace st::test;

class Graph : public GraphOfX {
 protected:
  st_value parameter(const char* name, int64_t rows, int64_t columns) {
    const std::array<int64_t, 2> dims = {rows, columns};
    st_value value = 0;
    EXPECT_TRUE(works(st_graph_parameter(graph, name, 2, dims.data(), ST_INIT_NORMAL, 0.1, &value)));
    return value;
  }
  st_status op(const char* name, std::initializer_list<st_value> in, const char* attributes, st_value* out) {
    return st_graph_op(graph, name, static_cast<int32_t>(in.size()), in.begin(), attributes, 1, out);
  }
};

TEST_F(Graph, ShapesThatDoNotFitAreNamedWithTheirOp) {
  const st_value w = parameter("w", 4, 5);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("matmul", {x, w}, nullptr, &y), {"st_graph_op", "matmul", "[batch, 3]", "[4, 5]"}));
  EXPECT_EQ(y, 0);
  const auto info = last_error();
  EXPECT_STREQ(info.op, "matmul");
}

TEST_F(Graph, ModelCreateNamesTheFirstCallThatWasWrong) {
  const st_value w = parameter("w", 4, 5);
  op("matmul", {x, w}, nullptr, &y);   // wrong
  op("gelu", {y}, nullptr, &y);        // propagates it
  op("no_such_op", {x}, nullptr, &y);  // wrong too, but later
  EXPECT_NE(st_graph_loss(graph, y), ST_OK);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(), {"st_graph_op", "matmul", "[4, 5]"}));
  EXPECT_EQ(std::strstr(st_last_error(), "no_such_op"), nullptr);
}

TEST_F(Graph, AnErrorInAScopeNamesTheScope) {
  const st_value w = parameter("w", 4, 5);
  ASSERT_TRUE(works(st_graph_scope(graph, "encoder")));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("matmul", {x, w}, nullptr, &y), {"encoder", "matmul"}));
}

TEST_F(Graph, UnknownOpsAndAttributesNameTheNearest) {
  EXPECT_TRUE(fails(ST_NOT_FOUND, op("geluu", {x}, nullptr, &y), {"geluu", "gelu"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("gelu", {x}, R"({"aproximate": "erf"})", &y), {"gelu", "aproximate", "approximate"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("gelu", {x}, R"({"approximate": "maybe"})", &y), {"gelu", "approximate", "maybe"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("gelu", {x}, "{\"approximate\": ", &y), {"attributes"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("gelu", {x}, "[1]", &y), {"JSON object"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("sum", {x}, R"({"axes": [0.5]})", &y), {"axes"}));
}

TEST_F(Graph, OpsOfTheRuntimeAreNotAHosts) {
  for (const char* name : {"load", "store", "accumulate", "adamw", "gradient_norm", "relu_backward"})
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op(name, {x}, nullptr, &y), {name})) << name;
}

TEST_F(Graph, WrongNumbersOfInputsAndValuesAreRefused) {
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("gelu", {}, nullptr, &y), {"gelu"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("gelu", {x, x}, nullptr, &y), {"gelu"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_op(graph, "gelu", -1, &x, nullptr, 1, &y), {"-1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_op(graph, "gelu", 1, &x, nullptr, 0, &y), {"room"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_op(graph, "gelu", 1, &x, nullptr, -1, &y), {"room"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("gelu", {99}, nullptr, &y), {"value 99"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("gelu", {-5}, nullptr, &y)));
}

TEST_F(Graph, ValuesOfAnotherGraphAreRefusedOrTheirOwn) {
  const auto other = hold<HeldGraph>(st_graph_create, context);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_op(other, "gelu", 1, &x, nullptr, 1, &y), {"does not belong to this graph"}));
}

TEST_F(Graph, OpsWithSeveralResultsFillTheRoomThereIs) {
  std::array<st_value, 5> pieces = {9, 9, 9, 9, 9};
  EXPECT_TRUE(works(st_graph_op(graph, "split", 1, &x, R"({"axis": 1, "sizes": [1, 2]})", 4, pieces.data())));
  EXPECT_GT(pieces[0], 0);
  EXPECT_GT(pieces[1], 0);
  EXPECT_EQ(pieces[2], 0);
  EXPECT_EQ(pieces[4], 9) << "written beyond the array";
}

TEST_F(Graph, BadShapesOfInputsAndParametersAreRefused) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const std::array<int64_t, 9> dims = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const std::array<int64_t, 2> batch_inside = {3, ST_BATCH}, symbolic = {ST_BATCH, 3}, huge = {kHuge, 2},
                               wide = {int64_t{1} << 31, int64_t{1} << 31};
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_input(graph, "a", ST_F32, 9, dims.data(), &y), {"rank", "9"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_input(graph, "a", ST_F32, -1, dims.data(), &y), {"rank", "-1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_input(graph, "a", 0, 1, dims.data(), &y), {"st_graph_input"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_input(graph, "a", 99, 1, dims.data(), &y), {"99"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_input(graph, "a", ST_F32, 2, batch_inside.data(), &y), {"batch"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_input(graph, "a", ST_F32, 2, wide.data(), &y), {"2147483648"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_input(graph, "x", ST_F32, 1, dims.data(), &y), {"x"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_input(graph, "", ST_F32, 1, dims.data(), &y), {"name"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_parameter(graph, "w", 2, symbolic.data(), ST_INIT_ZEROS, 1, &y), {"batch"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_parameter(graph, "w", 2, huge.data(), ST_INIT_ZEROS, 1, &y)));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_parameter(graph, "w", 2, wide.data(), ST_INIT_ZEROS, 1, &y), {"2147483648"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_parameter(graph, "w", 1, dims.data(), 6, 1, &y), {"init", "6"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_parameter(graph, "w", 1, dims.data(), -1, 1, &y), {"init"}));
  for (const double scale : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_parameter(graph, "w", 1, dims.data(), ST_INIT_NORMAL, scale, &y), {"scale is"}));
}

TEST_F(Graph, NamesAreGivenOnce) {
  parameter("w", 3, 3);
  const std::array<int64_t, 1> dims = {3};
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_parameter(graph, "w", 1, dims.data(), ST_INIT_ZEROS, 1, &y), {"\"w\""}));
  EXPECT_TRUE(works(st_graph_output(graph, "out", x)));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_output(graph, "out", x), {"\"out\""}));
}

TEST_F(Graph, ScopesNameParametersAndMustBeOpenToEnd) {
  EXPECT_TRUE(works(st_graph_scope(graph, "a")));
  EXPECT_TRUE(works(st_graph_scope(graph, "b")));
  parameter("w", 2, 2);
  EXPECT_TRUE(works(st_graph_scope_end(graph)));
  EXPECT_TRUE(works(st_graph_scope_end(graph)));
  const char* text = nullptr;
  ASSERT_TRUE(works(st_graph_text(graph, &text)));
  EXPECT_NE(std::strstr(text, "a.b.w"), nullptr) << text;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_scope_end(graph), {"st_graph_scope_end", "scope"}));
}

TEST_F(Graph, ALossIsAFloatingScalar) {
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_loss(graph, x), {"st_graph_loss", "scalar"}));
  std::array<st_value, 2> loss = {0, 0};
  const std::array<st_value, 2> pair = {x, x};
  EXPECT_TRUE(works(st_graph_op(graph, "mse", 2, pair.data(), nullptr, 2, loss.data())));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_loss(graph, loss[1]), {"first result"}));
}

TEST_F(Graph, AModelIsACopyOfTheGraph) {
  const auto own = hold<HeldContext>(st_context_create, nullptr);
  const auto sine = hold<HeldGraph>(st_graph_create, own);
  sine_graph(sine);
  ASSERT_TRUE(works(st_model_create(sine, 1, model.out())));
  int64_t before = 0, after = 0;
  ASSERT_TRUE(works(st_model_parameter_count(model, &before)));
  const std::array<int64_t, 1> dims = {3};
  EXPECT_TRUE(works(st_graph_parameter(sine, "later", 1, dims.data(), ST_INIT_ZEROS, 1, &y)));
  ASSERT_TRUE(works(st_model_parameter_count(model, &after)));
  EXPECT_EQ(before, 4);
  EXPECT_EQ(after, 4);
}

TEST_F(Graph, ALossWithADimensionIsRefusedWhereItIsNamed) {
  st_value mean = 0;
  ASSERT_TRUE(works(op("mean", {x}, R"({"axes": [0, 1], "keep_dims": true})", &mean)));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_loss(graph, mean), {"st_graph_loss", "[1, 1]", "scalar"}));
}

/// st_graph_apply of gelu on x with these attributes.
st_status apply(st_graph* graph, const char* op, st_value x, const std::vector<st_attribute>& attributes, st_value* y) {
  return st_graph_apply(graph, op, 1, &x, static_cast<int32_t>(attributes.size()), attributes.data(), 1, y);
}

TEST_F(Graph, TypedAttributesThatAreWrongAreNamed) {
  const std::array<int64_t, 1> axes = {0};
  EXPECT_TRUE(works(apply(graph, "affine", x, {{"scale", ST_ATTRIBUTE_INT, 0, 2, 0, nullptr, nullptr}}, &y)))
      << "an int is accepted for a real";
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, apply(graph, "affine", x, {{"scal", ST_ATTRIBUTE_REAL, 0, 0, 2, nullptr, nullptr}}, &y),
                    {"st_graph_apply", "affine", "scal", "did you mean \"scale\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, apply(graph, "affine", x, {{"scale", 9, 0, 0, 2, nullptr, nullptr}}, &y), {"scale", "type 9"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, apply(graph, "affine", x, {{nullptr, ST_ATTRIBUTE_REAL, 0, 0, 2, nullptr, nullptr}}, &y),
                    {"attribute 0", "name"}));
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT,
            apply(graph, "affine", x,
                  {{"scale", ST_ATTRIBUTE_REAL, 0, 0, 2, nullptr, nullptr}, {"scale", ST_ATTRIBUTE_REAL, 0, 0, 3, nullptr, nullptr}}, &y),
            {"scale", "twice"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, apply(graph, "sum", x, {{"keep_dims", ST_ATTRIBUTE_BOOL, 0, 2, 0, nullptr, nullptr}}, &y),
                    {"keep_dims", "0 or 1", "2"}));
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, apply(graph, "sum", x, {{"axes", ST_ATTRIBUTE_INTS, 1, 0, 0, nullptr, nullptr}}, &y), {"axes", "NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, apply(graph, "sum", x, {{"axes", ST_ATTRIBUTE_INTS, -1, 0, 0, axes.data(), nullptr}}, &y),
                    {"axes", "-1"}));
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, apply(graph, "cast", x, {{"dtype", ST_ATTRIBUTE_INT, 0, 12, 0, nullptr, nullptr}}, &y), {"dtype", "12"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, apply(graph, "cast", x, {{"dtype", ST_ATTRIBUTE_INT, 0, 0, 0, nullptr, nullptr}}, &y),
                    {"dtype", "must be given"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_apply(graph, "gelu", 1, &x, -1, nullptr, 1, &y), {"-1"}));
}

TEST_F(Graph, AHostsDropoutIsItsRateAlone) {
  EXPECT_TRUE(works(op("dropout", {x}, nullptr, &y)));
  EXPECT_TRUE(works(op("dropout", {x}, R"({"rate": 0.5})", &y)));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("dropout", {x, x}, nullptr, &y), {"dropout", "2 inputs"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("dropout", {x}, R"({"site": 3})", &y), {"dropout", "site", "rate"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("dropout", {x}, R"({"rate": "half"})", &y), {"dropout", "rate", "half"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("dropout", {x}, R"({"rate": 1.5})", &y), {"dropout", "rate", "1.5"}));
}

TEST_F(Graph, AnInputNamedAsDropoutsCountersIsRefusedBesideIt) {
  const std::array<int64_t, 1> dims = {2};
  st_value counters = 0;
  EXPECT_TRUE(works(st_graph_input(graph, "counters", ST_I64, 1, dims.data(), &counters)));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("dropout", {x}, nullptr, &y), {"dropout", "\"counters\"", "rename"}));
}

TEST_F(Graph, TellsWhatAValueIs) {
  auto info = filled(st_value_info_init, st_graph_value, graph, x);
  EXPECT_EQ(info.dtype, ST_F32);
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[0], ST_BATCH);
  EXPECT_EQ(info.dims[1], 3);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_value(graph, 99, &info), {"value 99"}));
  EXPECT_TRUE(works(create())) << "a query for a missing value is not the graph's error";
}

}  // namespace
