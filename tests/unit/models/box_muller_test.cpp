#include "models/box_muller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <span>
#include <vector>

#include "base/digest.h"
#include "models/initialize.h"

namespace st {
namespace {

struct Exact {
  long double first, second;
};

/// The textbook formula with 11 more bits than the library's; a and b are exact.
Exact exact_normals(double a, double b) {
  const long double radius = std::sqrt(-2 * std::log(1 - static_cast<long double>(a)));
  const long double angle = 2 * std::numbers::pi_v<long double> * b;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// 53 bits of two words as a fraction of 1, by plain conversion.
double fraction(uint32_t low, uint32_t high) { return static_cast<double>((low | uint64_t{high} << 32) >> 11) * 0x1p-53; }

Exact uniforms_of(const Philox& philox, uint64_t counter) {
  const auto bits = philox({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0});
  return {fraction(bits[0], bits[1]), fraction(bits[2], bits[3])};
}

/// 4 ulp of the value, plus the error of the expected value near its zeros: its angle, below 8, was rounded twice to 64 bits, and the
/// radius is below 9.
long double bound(long double value) { return std::abs(value) * 4 * 0x1p-53L + 9 * 2 * 0x1p-62L; }

/// Distance of two numbers of equal sign in float ulps.
int64_t steps_between(float a, float b) { return std::abs(int64_t{std::bit_cast<int32_t>(a)} - std::bit_cast<int32_t>(b)); }

TEST(UniformPairs, AreTheUpperBitsOfTheirCounter) {
  const Philox philox = philox_of(0x0123456789ABCDEF);
  for (const uint64_t counter : {uint64_t{0}, uint64_t{77}, (uint64_t{1} << 32) - 5, (uint64_t{1} << 40) + 1}) {
    const PairBlock pairs = uniform_pairs(philox, counter);
    for (size_t i = 0; i < kPairs; ++i) {
      const Exact expected = uniforms_of(philox, counter + i);
      EXPECT_EQ(pairs.first[i], static_cast<double>(expected.first)) << counter << " + " << i;
      EXPECT_EQ(pairs.second[i], static_cast<double>(expected.second)) << counter << " + " << i;
    }
  }
}

// Zeros, extremes and segment boundaries of logarithm, cosine and sine.
TEST(BoxMuller, IsRightAtTheEdges) {
  const double root_half = 1 - std::sqrt(0.5);
  std::vector<double> as = {0, 0x1p-53, 0x1p-52, 0x1p-30, 0.25, 0.5, 0.75, 1 - 0x1p-20, 1 - 0x1p-52, 1 - 0x1p-53};
  for (const double nudge : {-0x1p-20, -0x1p-40, 0.0, 0x1p-40, 0x1p-20}) as.push_back(root_half + nudge);
  std::vector<double> bs;
  for (int eighth = 0; eighth <= 8; ++eighth) {
    for (const double nudge : {-0x1p-53, -0x1p-40, -0x1p-10, 0.0, 0x1p-53, 0x1p-40, 0x1p-10}) {
      if (const double b = eighth * 0.125 + nudge; b >= 0 && b < 1) bs.push_back(b);
    }
  }
  for (const double a : as) {
    for (const double b : bs) {
      PairBlock pairs{};
      pairs.first[kPairs - 1] = a;
      pairs.second[kPairs - 1] = b;
      const PairBlock made = box_muller(pairs);
      const Exact exact = exact_normals(a, b);
      EXPECT_LE(std::abs(made.first[kPairs - 1] - exact.first), bound(exact.first)) << "a " << a << ", b " << b;
      EXPECT_LE(std::abs(made.second[kPairs - 1] - exact.second), bound(exact.second)) << "a " << a << ", b " << b;
    }
  }
}

// Quarter turns are exact: the radius, or zero.
TEST(BoxMuller, LiesOnTheAxesAtQuarterTurns) {
  PairBlock pairs{};
  for (size_t quarter = 0; quarter < 4; ++quarter) {
    pairs.first[quarter] = 0.5;
    pairs.second[quarter] = 0.25 * static_cast<double>(quarter);
  }
  const PairBlock made = box_muller(pairs);
  const double radius = made.first[0];
  EXPECT_NEAR(radius, std::sqrt(2 * std::numbers::ln2), 1e-15);
  const std::array<double, 4> first = {radius, 0, -radius, 0}, second = {0, radius, 0, -radius};
  for (size_t quarter = 0; quarter < 4; ++quarter) {
    EXPECT_EQ(made.first[quarter], first[quarter]);
    EXPECT_EQ(made.second[quarter], second[quarter]);
  }
}

constexpr int64_t kElements = 1 << 20;

std::vector<float> normal_weights() {
  std::vector<float> values(kElements);
  initialize(values, {Init::normal, 1, {}}, {kElements}, "w", 7);
  return values;
}

TEST(BoxMuller, IsWithinOneStepOfTheExactValueInFloat) {
  const auto values = normal_weights();
  const Philox philox = philox_of(mix(7, hash_name("w")));
  int64_t furthest = 0;
  for (size_t pair = 0; pair < values.size() / 2; ++pair) {
    const Exact uniforms = uniforms_of(philox, pair);
    const Exact exact = exact_normals(static_cast<double>(uniforms.first), static_cast<double>(uniforms.second));
    furthest = std::max(furthest, steps_between(values[2 * pair], static_cast<float>(exact.first)));
    furthest = std::max(furthest, steps_between(values[2 * pair + 1], static_cast<float>(exact.second)));
  }
  EXPECT_LE(furthest, 1);
}

// The tests above check the values; this one pins their bits, for any machine, compiler, compiler options and libm, so that a seed gives
// the same initial weights everywhere and in every release.
TEST(BoxMuller, HasTheSameBitsOnEveryMachine) {
  Digest digest;
  const auto weights = normal_weights();
  digest.update(std::as_bytes(std::span(weights)));
  const Philox philox = philox_of(7);
  for (uint64_t counter = 0; counter < 64 * kPairs; counter += kPairs) {
    const PairBlock pairs = box_muller(uniform_pairs(philox, counter));
    digest.update(std::as_bytes(std::span(pairs.first)));
    digest.update(std::as_bytes(std::span(pairs.second)));
  }
  EXPECT_EQ(digest.hex(), "f1589a574bb7e54069fa0573ec937dea");
}

}  // namespace
}  // namespace st
