// Gradient accumulation alone, over host arrays. Sums, strides and types: tests/unit/parts/accumulator_test.cpp.
#include <cstring>
#include <limits>
#include <vector>

#include "host_arrays.h"
#include "small_run.h"

namespace st::test {
namespace {

class CAccumulator : public testing::Test {
 protected:
  HeldContext context_ = hold<HeldContext>(st_context_create, nullptr);
};

TEST_F(CAccumulator, AHostsOwnLoopHasTheTokenMeanAtEachBoundary) {
  FloatArray g{{0, 0}}, h{{0}};
  const st_view gradients[] = {g.view(), h.view()};
  const auto a = hold<HeldAccumulator>(st_accumulator_create, context_, 2, 2, gradients);
  int boundaries = 0;
  for (int micro_batch = 0; micro_batch < 6; ++micro_batch) {
    const bool second = micro_batch % 2 == 1;
    g.values[0] = second ? 2 : 6, g.values[1] = second ? 1 : -9;  // sums over 1 and 3 tokens
    h.values[0] = second ? -8 : 4;
    int32_t yes = -1;
    double weight = 0;
    ASSERT_TRUE(works(st_accumulator_add(a, second ? 1 : 3)));
    ASSERT_TRUE(works(st_accumulator_should_step(a, &yes)));
    ASSERT_TRUE(works(st_accumulator_weight(a, &weight)));
    EXPECT_EQ(yes, second ? 1 : 0);
    EXPECT_EQ(weight, second ? 4 : 3);
    if (yes == 0) continue;
    ++boundaries;
    EXPECT_EQ(g.values, (std::vector<float>{2, -2}));
    EXPECT_EQ(h.values, (std::vector<float>{-1}));
  }
  EXPECT_EQ(boundaries, 3);
}

// Every micro-batch contains the scale, so the mean does, and unscale removes it. One inf among the four skips the step.
TEST_F(CAccumulator, StandsBeforeTheLossScaler) {
  FloatArray g{{0, 0}};
  const st_view view = g.view();
  const auto a = hold<HeldAccumulator>(st_accumulator_create, context_, 4, 1, &view);
  const auto scaler = hold<HeldLossScaler>(st_loss_scaler_create, context_, nullptr);
  for (const bool bad : {false, true}) {
    double scale = 0;
    for (int k = 0; k < 4; ++k) {
      ASSERT_TRUE(works(st_loss_scaler_scale(scaler, &scale)));
      g.values = {static_cast<float>(scale), bad && k == 2 ? std::numeric_limits<float>::infinity() : static_cast<float>(2 * k * scale)};
      ASSERT_TRUE(works(st_accumulator_add(a, 0.5)));
    }
    int32_t yes = 0, finite = -1, run = -1;
    ASSERT_TRUE(works(st_accumulator_should_step(a, &yes)));
    EXPECT_EQ(yes, 1);
    ASSERT_TRUE(works(st_loss_scaler_unscale(scaler, 1, &view, &finite)));
    ASSERT_TRUE(works(st_loss_scaler_step(scaler, &run)));
    ASSERT_TRUE(works(st_loss_scaler_update(scaler, nullptr)));
    EXPECT_EQ(run, bad ? 0 : 1);
    EXPECT_EQ(g.values[0], 2) << "a sum of 4 over a total weight of 2";
    if (!bad) {
      EXPECT_EQ(g.values[1], 6);
    }
  }
}

TEST_F(CAccumulator, BadArraysAreNamed) {
  FloatArray g{{1, 2, 3, 4}};
  const int64_t two[] = {2}, zero[] = {0};
  int32_t whole[2] = {1, 1};
  const auto refused = [&](const std::vector<st_view>& gradients, std::initializer_list<std::string_view> words, int64_t steps = 2) {
    HeldAccumulator a;
    EXPECT_TRUE(
        fails(ST_INVALID_ARGUMENT, st_accumulator_create(context_, steps, std::ssize(gradients), gradients.data(), a.out()), words));
  };
  refused({g.view(), {ST_F32, 1, two, nullptr, g.values.data() + 2, 8}}, {"gradient 0", "gradient 1", "share memory"});
  refused({{ST_F32, 1, two, zero, g.values.data(), 16}}, {"gradient 0"});
  refused({{ST_F32, 1, two, nullptr, reinterpret_cast<char*>(g.values.data()) + 1, 8}}, {"gradient 0", "not aligned"});
  refused({{ST_F32, 1, two, nullptr, g.values.data(), 4}}, {"gradient 0", "needs 8 bytes"});
  refused({{ST_I32, 1, two, nullptr, whole, 8}}, {"gradient 0", "got i32"});
  refused({}, {"at least one gradient"});
  refused({g.view()}, {"steps is 0"}, 0);
  refused({g.view()}, {"steps is 1048577"}, (1 << 20) + 1);
}

TEST_F(CAccumulator, OutOfTurnAndBadWeightsChangeNothing) {
  FloatArray g{{5}};
  const st_view view = g.view();
  const auto a = hold<HeldAccumulator>(st_accumulator_create, context_, 1, 1, &view);
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_accumulator_add(a, bad), {"weight is", "number of tokens"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_accumulator_add(a, 0), {"the step has no tokens"}));
  ASSERT_TRUE(works(st_accumulator_add(a, 5)));
  EXPECT_EQ(g.values[0], 1);
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_accumulator_add(a, 5), {"all 1 micro-batches", "should_step"}));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_accumulator_set_steps(a, 3), {"1 of 1", "should_step"}));
  EXPECT_EQ(g.values[0], 1);
  ASSERT_TRUE(works(st_accumulator_reset(a)));
  ASSERT_TRUE(works(st_accumulator_set_steps(a, 3)));
}

// As a checkpoint in the middle of a step would restore it.
TEST_F(CAccumulator, AStepGoesOnFromItsStateInAnotherOne) {
  FloatArray g{{5, 6}}, h{{7}};
  const st_view gradients[] = {g.view(), h.view()};
  const auto first = hold<HeldAccumulator>(st_accumulator_create, context_, 2, 2, gradients);
  const auto second = hold<HeldAccumulator>(st_accumulator_create, context_, 2, 2, gradients);
  ASSERT_TRUE(works(st_accumulator_add(first, 3)));
  int64_t n = 0, m = 0;
  const st_named_view *from = nullptr, *to = nullptr;
  ASSERT_TRUE(works(st_accumulator_state_views(first, &n, &from)));
  ASSERT_TRUE(works(st_accumulator_state_views(second, &m, &to)));
  ASSERT_EQ(n, 5);
  ASSERT_EQ(m, n);
  const char* names[] = {"added", "weight", "reported", "sum.0", "sum.1"};
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_STREQ(from[i].name, names[i]);
    ASSERT_EQ(from[i].view.bytes, to[i].view.bytes);
    std::memcpy(to[i].view.data, from[i].view.data, static_cast<size_t>(from[i].view.bytes));
  }
  g.values = {3, 2}, h.values = {1};
  ASSERT_TRUE(works(st_accumulator_add(second, 1)));
  EXPECT_EQ(g.values, (std::vector<float>{2, 2}));
  EXPECT_EQ(h.values, (std::vector<float>{2}));

  *static_cast<int64_t*>(to[0].view.data) = 9;
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_accumulator_add(second, 1), {"9 of 2", "reset"}));
  ASSERT_TRUE(works(st_accumulator_reset(second)));
  ASSERT_TRUE(works(st_accumulator_add(second, 1)));
}

TEST_F(CAccumulator, ItsSumsAreTheContextsMemoryAndItKeepsTheContext) {
  auto options = filled(st_context_options_init);
  options.memory_limit = 100 << 10;
  auto context = hold<HeldContext>(st_context_create, &options);
  FloatArray g{std::vector<float>(16 << 10, 1)}, more{std::vector<float>(16 << 10, 1)};
  const st_view gradients[] = {g.view(), more.view()};
  HeldAccumulator a;
  EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, st_accumulator_create(context, 2, 2, gradients, a.out()), {"sums of gradients"}));
  ASSERT_TRUE(works(st_accumulator_create(context, 2, 1, gradients, a.out())));
  const auto stats = memory_of(context);
  EXPECT_EQ(stats.allocated_bytes, 64 << 10);
  context.reset();
  ASSERT_TRUE(works(st_accumulator_add(a, 1)));
}

}  // namespace
}  // namespace st::test
