// Views that share memory with themselves or each other: allowed if they are read, refused if they are written.
#include <algorithm>
#include <array>

#include "view_calls.h"

namespace {

using namespace st::test;

class SharedViews : public ViewCalls {};

TEST_F(SharedViews, OneNumberMayBeReadAsManyRows) {
  std::vector<float> repeated(8, 0.75F), answer(8), other(8);
  const float one = 0.75F;
  const int64_t none[] = {0, 0};
  const auto all = [&](const int64_t* rows) { return st_view{ST_F32, 2, rows, nullptr, repeated.data(), 4 * rows[0]}; };
  const auto single = [&](const int64_t* rows) { return st_view{ST_F32, 2, rows, none, const_cast<float*>(&one), 4}; };
  const auto train = [&](SineRun& r, const st_view& eight_rows, const st_view& four_rows) {
    const st_named_view batch[] = {{"x", eight_rows}, y(8)}, half[] = {{"x", four_rows}, y(4)};
    const st_named_view by = {"prediction", four_rows};
    int32_t done = 0;
    EXPECT_TRUE(works(st_trainer_step(r.trainer, 2, batch, nullptr)));
    while (done == 0) ASSERT_TRUE(works(st_trainer_advance(r.trainer, 2, batch, 0, &done, nullptr)));
    EXPECT_TRUE(works(st_trainer_forward(r.trainer, 2, half, &outputs_count, &outputs)));
    EXPECT_TRUE(works(st_trainer_backward(r.trainer, 1, &by)));
    EXPECT_TRUE(works(st_trainer_apply(r.trainer, nullptr)));
  };
  train(undisturbed, all(eight), all(four));
  train(run, single(eight), single(four));
  EXPECT_EQ(run.digest(), undisturbed.digest());
  const auto room = [&](std::vector<float>& to) { return st_view{ST_F32, 2, eight, nullptr, to.data(), 32}; };
  EXPECT_TRUE(works(predict(all(eight), room(answer))));
  EXPECT_TRUE(works(predict(single(eight), room(other))));
  EXPECT_EQ(answer, other);
}

TEST_F(SharedViews, APredictionMayReplaceItsInput) {
  std::vector<float> wanted(8), memory = run.x;
  const st_view x = {ST_F32, 2, eight, nullptr, run.x.data(), 32}, room = {ST_F32, 2, eight, nullptr, wanted.data(), 32};
  const st_view both = {ST_F32, 2, eight, nullptr, memory.data(), 32};
  ASSERT_TRUE(works(predict(x, room)));
  ASSERT_TRUE(works(predict(both, both)));
  EXPECT_EQ(memory, wanted);
}

/// Two outputs of x [rows, 1]: its negative and its absolute value.
struct TwoOutputs {
  TwoOutputs() {
    const int64_t column[] = {ST_BATCH, 1};
    st_value x = 0, negative = 0, absolute = 0;
    EXPECT_TRUE(works(st_context_create(nullptr, context.out())));
    const auto graph = hold<HeldGraph>(st_graph_create, context);
    EXPECT_TRUE(works(st_graph_input(graph, "x", ST_F32, 2, column, &x)));
    EXPECT_TRUE(works(st_graph_op(graph, "neg", 1, &x, nullptr, 1, &negative)));
    EXPECT_TRUE(works(st_graph_op(graph, "abs", 1, &x, nullptr, 1, &absolute)));
    EXPECT_TRUE(works(st_graph_output(graph, "negative", negative)));
    EXPECT_TRUE(works(st_graph_output(graph, "absolute", absolute)));
    EXPECT_TRUE(works(st_model_create(graph, 1, model.out())));
    EXPECT_TRUE(works(st_predictor_create(model, nullptr, predictor.out())));
  }
  /// Writes four rows into one table of floats. The arguments: each output's first column and stride.
  st_status run(size_t negative, int64_t stride, size_t absolute, int64_t other_stride) {
    std::ranges::fill(table, 9.0F);
    const int64_t dims[] = {4, 1}, strides[] = {stride, 1}, other_strides[] = {other_stride, 1};
    float x[] = {1, -2, 3, -4};
    const st_named_view in = {"x", {ST_F32, 2, dims, nullptr, x, sizeof x}};
    const auto at = [&](size_t first, const int64_t* by) {
      return st_view{ST_F32, 2, dims, by, table.data() + first, static_cast<int64_t>(4 * (table.size() - first))};
    };
    const st_named_view out[] = {{"negative", at(negative, strides)}, {"absolute", at(absolute, other_strides)}};
    return st_predictor_run(predictor, 1, &in, 2, out);
  }
  HeldContext context;
  HeldModel model;
  HeldPredictor predictor;
  std::array<float, 16> table{};
};

TEST(SharedOutputs, OfTwoOutputsIsRefused) {
  TwoOutputs two;
  struct {
    size_t negative;
    int64_t stride;
    size_t absolute;
    int64_t other_stride;
  } const overlaps[] = {{0, 1, 0, 1}, {0, 1, 3, 1}, {3, 1, 0, 1}, {0, 2, 0, 2}, {0, 2, 4, 2}, {4, 2, 0, 2},
                        {0, 2, 3, 1}, {3, 1, 0, 2}, {0, 3, 0, 2}, {1, 2, 0, 3}, {0, 4, 12, 1}};
  for (const auto& o : overlaps) {
    EXPECT_TRUE(
        fails(ST_INVALID_ARGUMENT, two.run(o.negative, o.stride, o.absolute, o.other_stride), {"negative", "absolute", "share memory"}))
        << o.negative << " by " << o.stride << ", " << o.absolute << " by " << o.other_stride;
    EXPECT_TRUE(std::ranges::all_of(two.table, [](float v) { return v == 9; }));
  }
}

TEST(SharedOutputs, TheColumnsOfOneTableAreNone) {
  TwoOutputs two;
  ASSERT_TRUE(works(two.run(0, 2, 1, 2)));
  EXPECT_EQ(two.table, (std::array<float, 16>{-1, 1, 2, 2, -3, 3, 4, 4, 9, 9, 9, 9, 9, 9, 9, 9}));
  ASSERT_TRUE(works(two.run(2, 3, 1, 3)));
  EXPECT_EQ(two.table, (std::array<float, 16>{9, 1, -1, 9, 2, 2, 9, 3, -3, 9, 4, 4, 9, 9, 9, 9}));
  EXPECT_TRUE(works(two.run(0, 3, 10, 1))) << "beyond the other's end";
  EXPECT_TRUE(works(two.run(0, 2, 1, 4))) << "odd places and even ones";
}

TEST_F(SharedViews, AGradientMayLieInTheOutputThatItIsOf) {
  const st_view x = {ST_F32, 2, four, nullptr, run.x.data(), 16};
  const auto train = [&](SineRun& r, bool in_place) {
    for (int pair = 0; pair < 2; ++pair) {
      const st_named_view batch[] = {{"x", x}, y(4)};
      ASSERT_TRUE(works(st_trainer_forward(r.trainer, 2, batch, &outputs_count, &outputs)));
      std::array<float, 4> apart{};
      auto* prediction = static_cast<float*>(outputs[0].view.data);
      float* gradient = in_place ? prediction : apart.data();
      for (size_t i = 0; i < 4; ++i) gradient[i] = 0.5F * (prediction[i] - run.y[i]);
      const st_named_view by = {"prediction", {ST_F32, 2, four, nullptr, gradient, 16}};
      ASSERT_TRUE(works(st_trainer_backward(r.trainer, 1, &by)));
    }
    ASSERT_TRUE(works(st_trainer_apply(r.trainer, nullptr)));
  };
  for (int step = 0; step < 3; ++step) {
    train(run, true);
    train(undisturbed, false);
    EXPECT_EQ(run.digest(), undisturbed.digest());
  }
}

}  // namespace
