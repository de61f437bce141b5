#include <gtest/gtest.h>

#include <cmath>

#include "reference_run.h"

namespace st {
namespace {

struct State {
  Array parameter, moment1, moment2;
};

void update(State& state, const Array& gradient, double factor, bool skip, double rate, double number, const Attrs& attrs = {}) {
  Array skips(DType::boolean, {});
  skips.as<bool>()[0] = skip;
  run(Op::adamw, {gradient, Array::of<float>({}, {static_cast<float>(factor)}), skips, Array::of<double>({2}, {rate, number})}, attrs,
      {&state.parameter, &state.moment1, &state.moment2});
}

State one(double parameter) { return {Array::of<double>({1}, {parameter}), Array::of<double>({1}, {0}), Array::of<double>({1}, {0})}; }

TEST(ReferenceAdamW, MatchesTwoStepsByHand) {
  State state = one(1);
  const Attrs attrs{{"weight_decay", 0.01}};
  update(state, Array::of<double>({1}, {2}), 0.25, false, 0.1, 1, attrs);  // g = 1/2
  // Decay leaves 0.999; corrected moments are g and g^2, so the step is 0.1 * 0.5 / (0.5 + 1e-8).
  EXPECT_NEAR(state.moment1.as<double>()[0], 0.05, 1e-16);
  EXPECT_NEAR(state.moment2.as<double>()[0], 0.00025, 1e-18);
  EXPECT_NEAR(state.parameter.as<double>()[0], 0.999 - 0.1 / (1 + 2e-8), 1e-15);

  const double before = state.parameter.as<double>()[0];
  update(state, Array::of<double>({1}, {-4}), 0.25, false, 0.1, 2, attrs);  // g = -1
  EXPECT_NEAR(state.moment1.as<double>()[0], -0.055, 1e-16);                // 0.9 * 0.05 - 0.1
  EXPECT_NEAR(state.moment2.as<double>()[0], 0.00124975, 1e-17);            // 0.999 * 0.00025 + 0.001
  const double corrected1 = -0.055 / 0.19, corrected2 = 0.00124975 / 0.001999;
  EXPECT_NEAR(state.parameter.as<double>()[0], before * 0.999 - 0.1 * corrected1 / (std::sqrt(corrected2) + 1e-8), 1e-15);
}

TEST(ReferenceAdamW, AddsEpsilonAfterTheRootOfTheCorrectedMoment) {
  State state = one(0);
  update(state, Array::of<double>({1}, {1e-9}), 1, false, 1, 1);
  EXPECT_NEAR(state.parameter.as<double>()[0], -1e-9 / (1e-9 + 1e-8), 1e-14);
}

TEST(ReferenceAdamW, DecaysWithoutAGradient) {
  State state = one(3);
  update(state, Array::of<double>({1}, {0}), 1, false, 0.5, 1, {{"weight_decay", 0.1}});
  EXPECT_DOUBLE_EQ(state.parameter.as<double>()[0], 3 * 0.95);
}

TEST(ReferenceAdamW, WritesNothingWhenTheStepIsSkipped) {
  State state{Array::of<float>({2}, {1, 2}), Array::of<float>({2}, {3, 4}), Array::of<float>({2}, {5, 6})};
  update(state, Array::of<float>({2}, {INFINITY, NAN}), NAN, true, 0.1, 1);
  EXPECT_EQ(state.parameter.values<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(state.moment1.values<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(state.moment2.values<float>(), (std::vector<float>{5, 6}));
}

}  // namespace
}  // namespace st
