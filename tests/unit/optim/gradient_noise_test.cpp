#include "optim/gradient_noise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"

namespace st {
namespace {

constexpr int kWidth = 50;

TEST(GradientNoise, IsNotKnownBeforeTheFirstStepNorOfOneWithoutNoise) {
  GradientNoise noise;
  EXPECT_TRUE(std::isnan(noise.scale()));
  noise.add(4, NAN, 8, 1);
  noise.add(4, INFINITY, 8, INFINITY);
  EXPECT_TRUE(std::isnan(noise.scale()));
  noise.add(4, 1, 8, 1);  // equal norms: no noise
  EXPECT_TRUE(std::isnan(noise.scale()));
}

TEST(GradientNoise, SolvesTheTwoEquationsOfOneStep) {
  const double trace = 30, squared_gradient = 2;
  GradientNoise noise;
  for (int step = 0; step < 3; ++step) {
    noise.add(4, std::sqrt(squared_gradient + trace / 4), 32, std::sqrt(squared_gradient + trace / 32));
    EXPECT_NEAR(noise.scale(), trace / squared_gradient, 1e-12);
  }
}

/// Uniform on an interval of length 1 around 0, so the variance is 1 / 12.
double noise_of(uint32_t step, int row, int element) {
  const auto bits = philox_of(1)({step, static_cast<uint32_t>(row), static_cast<uint32_t>(element), 0});
  return static_cast<double>(uniform_of(bits[0])) - 0.5;
}

/// Row gradients are a known vector plus independent noise of known variance.
TEST(GradientNoise, FindsTheNoiseOfRowsThatWereMadeWithIt) {
  const double element = 0.06;
  const double known = 1. / 12 / (element * element);  // tr(S) / |G|^2: both are kWidth times one element's
  const int few = 4, many = 16;
  GradientNoise noise;
  for (uint32_t step = 0; step < 1000; ++step) {
    double small = 0, large = 0;
    for (int e = 0; e < kWidth; ++e) {
      double sum = 0;
      for (int row = 0; row < many; ++row) {
        if (row == few) small += sum * sum / (few * few);
        sum += element + noise_of(step, row, e);
      }
      large += sum * sum / (many * many);
    }
    noise.add(few, std::sqrt(small), many, std::sqrt(large));
  }
  EXPECT_NEAR(noise.scale() / known, 1, 0.15);
}

}  // namespace
}  // namespace st
