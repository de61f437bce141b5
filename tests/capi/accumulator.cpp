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

// Other views that are no gradients: CLossScaler.BadGradientsAreNamedAndNothingIsWritten.
TEST_F(CAccumulator, BadArraysAreNamed) {
  FloatArray g{{1, 2}};
  const st_view twice[] = {g.view(), g.view()};
  HeldAccumulator a;
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, st_accumulator_create(context_, 2, 2, twice, a.out()), {"gradient 0", "gradient 1", "share memory"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_accumulator_create(context_, 0, 1, twice, a.out()), {"steps is 0"}));
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
