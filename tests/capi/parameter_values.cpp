// Parameters that start with the host's values: copied when they are declared, and frozen if the host asks for it.
#include <array>
#include <cstring>
#include <limits>

#include "graph_of_x.h"

namespace {

using namespace st::test;

/// 2 x 3 values in an array with gaps: the element [i][j] is at 1 + 8 i + 2 j.
struct Strided {
  Strided() {
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j) array[static_cast<size_t>(1 + 8 * i + 2 * j)] = static_cast<float>(10 * i + j);
  }
  st_view view() { return {ST_F32, 2, dims.data(), strides.data(), array.data() + 1, 4 * (1 + 8 + 2 * 2)}; }
  std::array<float, 16> array{};
  std::array<int64_t, 2> dims = {2, 3}, strides = {8, 2};
};

class ParameterValues : public GraphOfX {};

TEST_F(ParameterValues, MayBeTheHosts) {
  Strided host;
  const st_view view = host.view();
  ASSERT_TRUE(works(st_graph_parameter_values(graph, "w", &view, 1, &y)));
  host.array.fill(-1);  // the values were copied
  ASSERT_TRUE(works(create()));
  std::array<float, 6> values{};
  const st_view all = {ST_F32, 2, host.dims.data(), nullptr, values.data(), sizeof values};
  ASSERT_TRUE(works(st_model_get(model, "w", &all)));
  EXPECT_EQ(values, (std::array<float, 6>{0, 1, 2, 10, 11, 12}));
  const auto second = hold<HeldModel>(st_model_create, graph, 7);
  ASSERT_TRUE(works(st_model_get(second, "w", &all)));
  EXPECT_EQ(values, (std::array<float, 6>{0, 1, 2, 10, 11, 12})) << "one graph can make several models";
}

// Views of no memory: wrong_views.cpp.
TEST_F(ParameterValues, ThatCannotBeReadAreRefused) {
  const auto refused = [&](const st_view& view, std::initializer_list<std::string_view> words) {
    return fails(ST_INVALID_ARGUMENT, st_graph_parameter_values(graph, "w", &view, 1, &y), words);
  };
  Strided host;
  st_view view = host.view();
  view.dtype = ST_I32;
  EXPECT_TRUE(refused(view, {"\"w\" is i32", "ST_F32"}));
  view = host.view();
  host.dims[0] = ST_BATCH;
  EXPECT_TRUE(refused(view, {"-1"}));
  host.dims[0] = 2;
  host.array[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(refused(view, {"element 2", "NaN"}));
  host.array[5] = 0;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_graph_parameter_values(graph, "w", &view, 2, &y), {"trainable", "2"}));
  EXPECT_EQ(y, 0);
}

TEST_F(ParameterValues, ThatAreFrozenHaveNoGradientAndStayAsTheyAre) {
  Strided host;
  const st_view view = host.view();
  const std::array<int64_t, 2> dims = {3, 2}, rows = {4, 3};
  st_value free = 0, frozen = 0;
  ASSERT_TRUE(works(st_graph_parameter_values(graph, "frozen", &view, 0, &frozen)));
  ASSERT_TRUE(works(st_graph_parameter(graph, "free", 2, dims.data(), ST_INIT_ONES, 1, &free)));
  y = st_op_matmul(graph, st_op_matmul(graph, x, free, 0, 0), frozen, 0, 0);
  ASSERT_TRUE(works(st_graph_loss(graph, st_op_mse(graph, y, x, ST_NONE, nullptr))));
  ASSERT_TRUE(works(create()));
  const auto info = filled(st_parameter_info_init, st_model_parameter, model, 0);
  EXPECT_EQ(info.trainable, 0);

  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 4, "lr": 0.1, "weight_decay": 0.5, "warmup": 0})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);
  std::array<float, 12> batch{};
  for (size_t i = 0; i < batch.size(); ++i) batch[i] = static_cast<float>(i) - 5;
  const st_named_view views[] = {{"x", {ST_F32, 2, rows.data(), nullptr, batch.data(), sizeof batch}}};
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(works(st_trainer_step(trainer, 1, views, nullptr)));

  std::array<float, 6> values{};
  const st_view whole = {ST_F32, 2, host.dims.data(), nullptr, values.data(), sizeof values};
  ASSERT_TRUE(works(st_model_get(model, "frozen", &whole)));
  EXPECT_EQ(values, (std::array<float, 6>{0, 1, 2, 10, 11, 12})) << "neither a step nor weight decay changes it";
  const st_view moved = {ST_F32, 2, dims.data(), nullptr, values.data(), sizeof values};
  ASSERT_TRUE(works(st_model_get(model, "free", &moved)));
  for (const float value : values) EXPECT_NE(value, 1);
  const char* program = nullptr;
  ASSERT_TRUE(works(st_trainer_explain(trainer, &program)));
  EXPECT_NE(std::strstr(program, "gradient.free"), nullptr);
  EXPECT_EQ(std::strstr(program, "gradient.frozen"), nullptr);
}

TEST_F(ParameterValues, ThatAreAllFrozenHaveNoTrainer) {
  Strided host;
  const st_view view = host.view();
  ASSERT_TRUE(works(st_graph_parameter_values(graph, "frozen", &view, 0, &y)));
  y = st_op_matmul(graph, x, y, 0, 1);
  ASSERT_TRUE(works(st_graph_loss(graph, st_op_mse(graph, y, y, ST_NONE, nullptr))));
  ASSERT_TRUE(works(create()));
  HeldTrainer trainer;
  const auto recipe = hold<HeldRecipe>(st_recipe_create, nullptr);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_create(model, recipe, nullptr, trainer.out()), {"loss", "trainable parameter"}));
}

}  // namespace
