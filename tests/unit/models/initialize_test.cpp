#include "models/initialize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace st {
namespace {

std::vector<float> made(const Initializer& init, const Shape& shape, std::string_view name = "w", uint64_t seed = 1) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  initialize(values, init, shape, name, seed);
  return values;
}

struct Moments {
  double mean = 0, deviation = 0, kurtosis = 0, neighbours = 0;  // neighbours: correlation of element i with i + 1
};

Moments moments_of(const std::vector<float>& values) {
  const auto n = static_cast<double>(values.size());
  Moments m;
  for (const float v : values) m.mean += v / n;
  double second = 0, fourth = 0, product = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double d = values[i] - m.mean;
    second += d * d / n;
    fourth += d * d * d * d / n;
    if (i + 1 < values.size()) product += d * (values[i + 1] - m.mean) / n;
  }
  m.deviation = std::sqrt(second);
  m.kurtosis = fourth / (second * second);
  m.neighbours = product / second;
  return m;
}

// 250,000 samples: the standard error of the mean is deviation / 500, of the deviation 0.14 %, of a normal's kurtosis 0.01, of a
// correlation 0.002. The bounds below are five standard errors.
constexpr int64_t kRows = 500, kColumns = 500;

TEST(Initialize, DrawsNormalNumbers) {
  const Moments m = moments_of(made({Init::normal, 0.02, {}}, {kRows, kColumns}));
  EXPECT_NEAR(m.mean, 0, 0.02 / 100);
  EXPECT_NEAR(m.deviation, 0.02, 0.02 * 0.007);
  EXPECT_NEAR(m.kurtosis, 3, 0.05);
  EXPECT_NEAR(m.neighbours, 0, 0.01);
}

TEST(Initialize, DrawsUniformNumbersWithinTheirWidth) {
  const auto values = made({Init::uniform, 0.5, {}}, {kRows, kColumns});
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -0.5F);
  EXPECT_LE(*high, 0.5F);
  const Moments m = moments_of(values);
  EXPECT_NEAR(m.mean, 0, 0.005);
  EXPECT_NEAR(m.deviation, 0.5 / std::sqrt(3.0), 0.002);
  EXPECT_NEAR(m.kurtosis, 1.8, 0.02);
  EXPECT_NEAR(m.neighbours, 0, 0.01);
}

TEST(Initialize, ScalesByFan) {
  const Moments xavier = moments_of(made({Init::xavier, 1, {}}, {100, 2500}));
  EXPECT_NEAR(xavier.deviation, std::sqrt(2.0 / 2600), std::sqrt(2.0 / 2600) * 0.007);
  const Moments kaiming = moments_of(made({Init::kaiming, std::sqrt(2.0), {}}, {100, 2500}));
  EXPECT_NEAR(kaiming.deviation, std::sqrt(2.0 / 100), std::sqrt(2.0 / 100) * 0.007);
  // Leading dimensions count matrices, each with its own fan.
  const Moments copies = moments_of(made({Init::kaiming, 1, {}}, {10, 100, 250}));
  EXPECT_NEAR(copies.deviation, 0.1, 0.1 * 0.007);
  EXPECT_THROW(made({Init::xavier, 1, {}}, {8}), Error);
  EXPECT_THROW(made({Init::kaiming, 1, {}}, {}), Error);
}

TEST(Initialize, MakesAShardWithoutItsNeighbours) {
  for (const Init kind : {Init::normal, Init::uniform, Init::xavier, Init::kaiming, Init::ones, Init::zeros}) {
    const Shape shape = {37, 11};  // more than three blocks of random numbers, and a ragged one
    const Initializer init{kind, 0.3, {}};
    const auto whole = made(init, shape);
    for (int64_t first = 0; first <= 407; first += 5) {
      for (const int64_t size : {0, 1, 2, 3, 8, 29, 127, 128, 129, 260}) {
        if (first + size > 407) continue;
        std::vector<float> piece(static_cast<size_t>(size), -7);
        initialize(piece, init, shape, "w", 1, first);
        EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + first)) << "first " << first << ", size " << size;
      }
    }
  }
}

TEST(Initialize, DependsOnSeedAndName) {
  const Initializer init{Init::normal, 1, {}};
  const auto values = made(init, {64}, "a", 1);
  EXPECT_EQ(values, made(init, {64}, "a", 1));
  EXPECT_NE(values, made(init, {64}, "b", 1));
  EXPECT_NE(values, made(init, {64}, "a", 2));
  // The first elements do not depend on the size, so that a table can grow.
  const auto longer = made(init, {128}, "a", 1);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), longer.begin()));
}

TEST(Initialize, CopiesGivenValues) {
  const Initializer init{Init::values, 1, {1, 2, 3, 4}};
  EXPECT_EQ(made(init, {2, 2}), (std::vector<float>{1, 2, 3, 4}));
  std::vector<float> piece(2);
  initialize(piece, init, {2, 2}, "w", 0, 1);
  EXPECT_EQ(piece, (std::vector<float>{2, 3}));
  EXPECT_THROW(made(init, {5}), Error);
}

TEST(Initialize, RefusesARangeOutsideTheShape) {
  std::vector<float> piece(3);
  const Initializer init{Init::ones, 1, {}};
  EXPECT_THROW(initialize(piece, init, {4}, "w", 0, 2), Error);
  EXPECT_THROW(initialize(piece, init, {4}, "w", 0, -1), Error);
  EXPECT_THROW(initialize(piece, init, {4}, "w", 0, INT64_MAX), Error);
  EXPECT_THROW(initialize(piece, init, {kBatch, 4}, "w", 0), Error);
  EXPECT_NO_THROW(initialize(piece, init, {4}, "w", 0, 1));
}

}  // namespace
}  // namespace st
