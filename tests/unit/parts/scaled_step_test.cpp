#include "parts/scaled_step.h"

#include "gradient_arrays.h"
#include "refusal.h"

namespace st {
namespace {

ScaledStep made(const LossScale& options = {}) { return ScaledStep(options, std::make_unique<Workers>(1)); }

struct Gradient {
  std::vector<float> values;
  std::vector<GradientArray> arrays() { return {array(DType::f32, values)}; }
};

TEST(ScaledStep, UnscalesByTheScaleThatItGaveAndUpdatesLast) {
  ScaledStep step = made({.scale = 1024, .growth_interval = 1});
  for (const double scale : {1024.0, 2048.0, 4096.0}) {  // each step is a growth step
    EXPECT_EQ(step.scale(), scale);
    EXPECT_EQ(step.scale(), scale) << "the second micro-batch's";
    Gradient g{{static_cast<float>(3 * scale), static_cast<float>(-scale)}};
    EXPECT_TRUE(step.unscale(g.arrays()));
    EXPECT_EQ(g.values, (std::vector<float>{3, -1}));
    EXPECT_TRUE(step.step());
    EXPECT_FALSE(step.update());
  }
}

TEST(ScaledStep, AnInfAnywhereSkipsTheStepAndBacksOff) {
  ScaledStep step = made();
  for (size_t bad = 0; bad < 3; ++bad) {
    const double scale = step.scale();
    std::vector<Gradient> gradients(3, Gradient{{1, 2}});
    gradients[bad].values[1] = kInf;
    std::vector<GradientArray> all;
    for (Gradient& g : gradients) all.push_back(g.arrays()[0]);
    EXPECT_FALSE(step.unscale(all)) << bad;
    EXPECT_FALSE(step.step());
    EXPECT_TRUE(step.update());
    EXPECT_EQ(step.scale(), scale / 2);
    step.restore(step.state());
  }
}

TEST(ScaledStep, SwitchedOffLeavesGradientsAndStillLooks) {
  ScaledStep step = made({.enabled = false});
  for (const float last : {3.0F, kInf}) {
    EXPECT_EQ(step.scale(), 1);
    Gradient g{{1, 2, last}};
    EXPECT_EQ(step.unscale(g.arrays()), last == 3);
    EXPECT_EQ(g.values, (std::vector<float>{1, 2, last}));
    EXPECT_EQ(step.step(), last == 3);
    EXPECT_EQ(step.update(), last != 3);
  }
}

// Every call in every state: calls in order work, others report the order and change nothing.
TEST(ScaledStep, OutOfTurnIsWrongStateThatSaysTheOrder) {
  const std::vector<const char*> names = {"scale", "unscale", "step", "update"};
  const auto call = [](ScaledStep& step, size_t which) {
    Gradient g{{1, 2}};
    switch (which) {
      case 0:
        return static_cast<void>(step.scale());
      case 1:
        return static_cast<void>(step.unscale(g.arrays()));
      case 2:
        return static_cast<void>(step.step());
      default:
        return static_cast<void>(step.update());
    }
  };
  for (size_t done = 0; done < 4; ++done) {  // number of calls of the step made so far
    for (size_t which = 0; which < 4; ++which) {
      ScaledStep step = made();
      for (size_t i = 0; i < done; ++i) call(step, i);
      const bool in_turn = which == done || (which == 0 && done == 1);
      const std::string before = step.state();
      if (in_turn) {
        EXPECT_NO_THROW(call(step, which)) << names[which] << " after " << done << " calls";
        continue;
      }
      const auto out_of_turn = [&] { call(step, which); };
      EXPECT_TRUE(refuses(Code::wrong_state, {names[which], "scale, backward, unscale, clip, step, update"}, out_of_turn));
      EXPECT_EQ(step.state(), before);
      for (size_t i = done; i < 4; ++i) call(step, i);  // the step continues as if nothing had happened
    }
  }
}

TEST(ScaledStep, WhatIsRefusedWritesNothingAndCanBeAskedAgain) {
  ScaledStep step = made();
  step.scale();
  EXPECT_THROW(step.unscale({}), Error);
  Gradient g{{65536}};
  std::vector<GradientArray> all = g.arrays();
  std::vector<int32_t> whole = {1};
  all.push_back(array(DType::i32, whole));
  EXPECT_THROW(step.unscale(all), Error);
  EXPECT_EQ(g.values[0], 65536);
  EXPECT_TRUE(step.unscale(g.arrays()));
  EXPECT_EQ(g.values[0], 1);
}

TEST(ScaledStep, RestoreBeginsTheStepAnew) {
  ScaledStep step = made();
  step.scale();
  Gradient g{{1}};
  step.unscale(g.arrays());
  step.restore(R"({"scale":8.0,"good_steps":3})");
  EXPECT_EQ(step.scale(), 8);
  EXPECT_EQ(step.state(), R"({"scale":8.0,"good_steps":3})");
  EXPECT_THROW(step.restore("{}"), Error);
  EXPECT_TRUE(step.unscale(g.arrays())) << "a state that is refused forgets no step";
}

}  // namespace
}  // namespace st
