#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "backend/gradient_norm_order.h"
#include "reference_run.h"

namespace st {
namespace {

using namespace gradient_norm_order;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
Array random_gradient(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<T>(normal(random) * std::pow(10.0, normal(random))));
  return Array::of<T>({n}, values);
}

std::vector<double> random_sums(int64_t n) {
  const Array gradient = random_gradient<double>(n, 5);
  std::vector<double> sums = gradient.values<double>();
  for (double& sum : sums) sum = std::fabs(sum);
  return sums;
}

// The header's definition, as it says it: split at the largest power of two below n.
double split_tree(std::span<const double> blocks) {
  if (blocks.empty()) return 0;
  if (blocks.size() == 1) return blocks[0];
  const size_t half = std::bit_ceil(blocks.size()) / 2;
  return split_tree(blocks.first(half)) + split_tree(blocks.subspan(half));
}

double tree(std::span<const double> blocks) {
  BlockTree tree;
  for (const double block : blocks) tree.add(block);
  return tree.sum();
}

TEST(GradientNormOrder, SplitsBlocksAtTheLargestPowerOfTwo) {
  const std::vector<double> blocks = random_sums(130);
  for (size_t n = 0; n <= blocks.size(); ++n) EXPECT_EQ(tree(std::span(blocks).first(n)), split_tree(std::span(blocks).first(n))) << n;
}

TEST(GradientNormOrder, LevelByLevelGivesTheSameBits) {
  std::vector<double> level = random_sums(107);
  const double want = tree(level);
  while (level.size() > 1) {
    std::vector<double> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = next;
  }
  EXPECT_EQ(level[0], want);
}

TEST(GradientNormOrder, AddsSixteenLanesAndThenTheirHalves) {
  const std::vector<double> x = random_gradient<double>(1000, 9).values<double>();
  std::array<double, 16> lanes{};
  for (size_t lane = 0; lane < 16; ++lane) {
    for (size_t i = lane; i < x.size(); i += 16) lanes[lane] += x[i] * x[i];
  }
  const auto pair = [&](size_t i) { return lanes[i] + lanes[i + 8]; };
  const auto four = [&](size_t i) { return pair(i) + pair(i + 4); };
  const double want = (four(0) + four(2)) + (four(1) + four(3));
  EXPECT_EQ(sum_of_block(1000, [&](int64_t i) { return x[static_cast<size_t>(i)]; }), want);
}

TEST(ReferenceGradientNorm, EqualsTheNaiveNormTo1e12) {
  const std::vector<Array> gradients = {random_gradient<float>(1, 1), random_gradient<float>(5000, 2), random_gradient<float>(0, 3),
                                        random_gradient<double>(70001, 4)};
  long double squares = 0;
  for (const float g : gradients[0].values<float>()) squares += static_cast<long double>(g) * g;
  for (const float g : gradients[1].values<float>()) squares += static_cast<long double>(g) * g;
  for (const double g : gradients[3].values<double>()) squares += static_cast<long double>(g) * g;
  const double want = static_cast<double>(std::sqrt(squares));
  const std::vector<Array> out = run(Op::gradient_norm, gradients);
  EXPECT_NEAR(out[0].as<double>()[0], want, 1e-12 * want);
  EXPECT_TRUE(out[1].as<bool>()[0]);
}

TEST(ReferenceGradientNorm, AddsTheTreesOfTensorsInOrder) {
  const Array a = random_gradient<double>(5 * kBlock + 17, 1), b = random_gradient<double>(3 * kBlock - 1, 2);
  double squares = 0;
  for (const Array* x : {&a, &b}) {
    std::vector<double> blocks;
    for (int64_t from = 0; from < x->elements(); from += kBlock) {
      const int64_t n = std::min(kBlock, x->elements() - from);
      blocks.push_back(sum_of_block(n, [&](int64_t i) { return x->as<double>()[from + i]; }));
    }
    squares += split_tree(blocks);
  }
  EXPECT_EQ(run(Op::gradient_norm, {a, b})[0].as<double>()[0], std::sqrt(squares));
}

TEST(ReferenceGradientNorm, FindsEveryElementThatIsNotFinite) {
  for (const double bad : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    for (const int64_t at : {0, 1023, 1024, 2999}) {
      Array gradient = random_gradient<float>(3000, 1);
      gradient.as<float>()[at] = static_cast<float>(bad);
      EXPECT_FALSE(run(Op::gradient_norm, {random_gradient<float>(7, 2), gradient})[1].as<bool>()[0]) << bad << " at " << at;
    }
  }
}

TEST(ReferenceGradientNorm, DoesNotTakeAnOverflowOfTheSquareForInfinity) {
  const std::vector<Array> out = run(Op::gradient_norm, {Array::of<double>({2}, {1e200, 1})});
  EXPECT_EQ(out[0].as<double>()[0], kInfinity);
  EXPECT_TRUE(out[1].as<bool>()[0]);
}

}  // namespace
}  // namespace st
