// Registration of host ops and their calls in a graph: invalid ones are refused by name.
#include "graph_of_x.h"
#include "square_and_mix.h"

namespace {

using namespace st::test;

class HostOpGraph : public GraphOfX {
 protected:
  st_status op(const char* name, std::initializer_list<st_value> in, const char* attributes = nullptr) {
    return st_graph_op(graph, name, static_cast<int32_t>(in.size()), in.begin(), attributes, 1, &y);
  }
  st_status add(const char* name, const st_op_callbacks& made, void* user = nullptr) { return st_op_register(context, name, &made, user); }
};

TEST_F(HostOpGraph, AnUnknownOpNamesTheNearestOfBothKinds) {
  ASSERT_TRUE(works(add("swirl", callbacks(square, nullptr))));
  EXPECT_TRUE(fails(ST_NOT_FOUND, op("swirll", {x}), {"\"swirl\""}));
  EXPECT_TRUE(fails(ST_NOT_FOUND, op("geluu", {x}), {"\"gelu\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op("swirl", {x}, R"({"axis": 1})"), {"swirl", "no attributes"}));
  for (const char* name : {"host", "host_backward"})
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, op(name, {x}, R"({"name": "swirl", "id": 1})"), {name, "not in models"}));
}

TEST_F(HostOpGraph, ANegativeDimensionWithoutABatchIsALie) {
  const auto negative = [](void*, int32_t, const st_op_type* inputs, int32_t, st_op_type* outputs) {
    outputs[0] = inputs[0];
    outputs[0].dims[0] = -4;
    return st_status{ST_OK};
  };
  const int64_t dims[] = {3};
  st_value w = 0;
  ASSERT_TRUE(works(add("negative", callbacks(square, nullptr, 1, negative))));
  ASSERT_TRUE(works(st_graph_parameter(graph, "w", 1, dims, ST_INIT_ZEROS, 1, &w)));
  EXPECT_TRUE(fails(ST_CALLBACK, op("negative", {w}), {"negative", "[-4]"}));
  EXPECT_TRUE(works(op("negative", {x}))) << "four times the batch";
}

TEST_F(HostOpGraph, AShapeCallbackThatCallsItsGraphIsToldBusy) {
  const auto curious = [](void* user, int32_t n, const st_op_type* inputs, int32_t m, st_op_type* outputs) {
    const char* text = nullptr;
    EXPECT_TRUE(fails(ST_BUSY, st_graph_text(static_cast<st_graph*>(user), &text)));
    EXPECT_TRUE(fails(ST_BUSY, st_graph_destroy(static_cast<st_graph*>(user)), {"st_graph_destroy"}));
    return as_the_first(nullptr, n, inputs, m, outputs);
  };
  ASSERT_TRUE(works(add("curious", callbacks(square, nullptr, 1, curious), static_cast<st_graph*>(graph))));
  EXPECT_TRUE(works(op("curious", {x})));
}

TEST_F(HostOpGraph, WithoutBackwardATrainerThatNeedsItIsRefused) {
  ASSERT_TRUE(works(add("one_way", callbacks(square, nullptr))));
  const int64_t dims[] = {3, 1};
  st_value w = 0;
  ASSERT_TRUE(works(st_graph_parameter(graph, "w", 2, dims, ST_INIT_NORMAL, 1, &w)));
  const auto loss_of = [&](bool before) {  // one_way(x) w, or one_way(x w)
    HeldTrainer trainer;
    if (before) {
      EXPECT_TRUE(works(op("one_way", {x})));
    }
    EXPECT_TRUE(works(op("matmul", {before ? y : x, w})));
    if (!before) {
      EXPECT_TRUE(works(op("one_way", {y})));
    }
    EXPECT_TRUE(works(op("mean", {y})));
    EXPECT_TRUE(works(st_graph_loss(graph, y)));
    EXPECT_TRUE(works(st_model_create(graph, 0, model.out())));
    const auto recipe = hold<HeldRecipe>(st_recipe_create, nullptr);
    return st_trainer_create(model, recipe, nullptr, trainer.out());
  };
  EXPECT_TRUE(works(loss_of(true))) << "no gradient flows through it";
  model.reset();
  EXPECT_TRUE(fails(ST_UNSUPPORTED, loss_of(false), {"one_way", "backward", "register it with one"}));
}

// y = 2 x, and as a second output whether x is positive: integers, which have no gradient.
TEST_F(HostOpGraph, AnIntegerOutputHasNoGradient) {
  static bool saw_none = false, saw_unwanted = false;
  const auto shape = [](void*, int32_t, const st_op_type* inputs, int32_t, st_op_type* outputs) {
    outputs[0] = outputs[1] = inputs[0];
    outputs[1].dtype = ST_I32;
    return st_status{ST_OK};
  };
  const auto forward = [](void*, int32_t, const st_view* in, int32_t, const st_view* out) {
    for (int64_t i = 0; i < elements(in[0]); ++i) {
      values(out[0])[i] = 2 * values(in[0])[i] + 0 * values(in[1])[0];
      static_cast<int32_t*>(out[1].data)[i] = values(in[0])[i] > 0;
    }
    return st_status{ST_OK};
  };
  const auto backward = [](void*, int32_t, const st_view* in, int32_t, const st_view*, const st_view* d, const st_view* dx) {
    saw_none = d[1].data == nullptr && d[1].dtype == ST_I32 && d[1].rank == 2;
    saw_unwanted = dx[1].data == nullptr && dx[1].rank == 2;
    for (int64_t i = 0; i < elements(in[0]); ++i) values(dx[0])[i] = 2 * values(d[0])[i];
    return st_status{ST_OK};
  };
  ASSERT_TRUE(works(add("double_and_sign", callbacks(forward, backward, 2, shape))));
  const int64_t dims[] = {3, 3};
  st_value w = 0;
  ASSERT_TRUE(works(st_graph_parameter(graph, "w", 2, dims, ST_INIT_NORMAL, 1, &w)));
  ASSERT_TRUE(works(op("matmul", {x, w})));
  ASSERT_TRUE(works(op("double_and_sign", {y, x})));
  ASSERT_TRUE(works(op("mean", {y})));
  ASSERT_TRUE(works(st_graph_loss(graph, y)));
  ASSERT_TRUE(works(st_model_create(graph, 0, model.out())));
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 2})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);
  float rows[6] = {1, 2, 3, -1, -2, -4};
  const int64_t two[] = {2, 3};
  const st_named_view view = {"x", {ST_F32, 2, two, nullptr, rows, sizeof rows}};
  EXPECT_TRUE(works(st_trainer_step(trainer, 1, &view, nullptr)));
  EXPECT_TRUE(saw_none);
  EXPECT_TRUE(saw_unwanted) << "x is data: no gradient is requested";
}

}  // namespace
