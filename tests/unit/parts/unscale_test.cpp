#include "parts/unscale.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "gradient_arrays.h"

namespace st {
namespace {

/// Runs in the library's floating-point mode.
class Unscale : public testing::Test {
 protected:
  const FloatMode mode_;
  Workers workers_{2};
};

std::vector<uint16_t> all_halves() {
  std::vector<uint16_t> values(65536);
  std::iota(values.begin(), values.end(), uint16_t{0});
  return values;
}

bool same_half(uint16_t a, uint16_t b, uint16_t infinity) {
  const bool both_nan = (a & 0x7FFF) > infinity && (b & 0x7FFF) > infinity;
  return a == b || both_nan;
}

// unscale has its own vectorised conversions; base/float16.h is the reference. 2^-16 makes denormals, 4 overflows, 1/3 rounds.
TEST_F(Unscale, OfEveryHalfIsTheRoundedProduct) {
  for (const double inverse : {0x1p-16, 0.25, 4.0, 1.0 / 3, 1.0}) {
    const auto factor = static_cast<float>(inverse);
    auto f16 = all_halves(), bf16 = all_halves();
    unscale(array(DType::f16, f16), inverse, workers_);
    unscale(array(DType::bf16, bf16), inverse, workers_);
    for (uint32_t h = 0; h < 65536; ++h) {
      const auto was = static_cast<uint16_t>(h);
      const uint16_t want = inverse == 1 ? was : f16_of(f32_of_f16(was) * factor);
      ASSERT_TRUE(same_half(f16[h], want, 0x7C00)) << "f16 " << h << " by " << inverse << ": " << f16[h] << ", wanted " << want;
      const uint16_t wide = inverse == 1 ? was : bf16_of(f32_of_bf16(was) * factor);
      ASSERT_TRUE(same_half(bf16[h], wide, 0x7F80)) << "bf16 " << h << " by " << inverse << ": " << bf16[h] << ", wanted " << wide;
    }
  }
}

TEST_F(Unscale, OfF32AndF64IsTheProduct) {
  std::vector<float> f32(100003);
  std::vector<double> f64(f32.size());
  for (size_t i = 0; i < f32.size(); ++i) f64[i] = f32[i] = static_cast<float>(std::sin(static_cast<double>(i))) * 1e4F;
  auto want = f64;
  EXPECT_TRUE(unscale(array(DType::f32, f32), 0.1, workers_));
  EXPECT_TRUE(unscale(array(DType::f64, f64), 0.1, workers_));
  for (size_t i = 0; i < f32.size(); ++i) {
    ASSERT_EQ(f32[i], static_cast<float>(want[i]) * 0.1F) << i;
    ASSERT_EQ(f64[i], want[i] * 0.1) << i;
  }
}

// One +inf, -inf or NaN in each type, at places on both sides of the boundaries of vectors and tasks.
TEST_F(Unscale, FindsWhatIsNotFiniteWhereverItIs) {
  constexpr size_t kCount = (1 << 16) + 37;
  for (const size_t at : {size_t{0}, size_t{7}, size_t{65535}, size_t{65536}, kCount - 1}) {
    for (const float bad : {kInf, -kInf, std::nanf(""), 1.0F}) {
      for (const double inverse : {1.0, 0.5}) {
        std::vector<float> f32(kCount, 3);
        std::vector<double> f64(kCount, 3);
        std::vector<uint16_t> f16(kCount, f16_of(3)), bf16(kCount, bf16_of(3));
        f32[at] = bad, f64[at] = bad, f16[at] = f16_of(bad), bf16[at] = bf16_of(bad);
        const bool finite = bad == 1;
        EXPECT_EQ(unscale(array(DType::f32, f32), inverse, workers_), finite) << at << " " << bad;
        EXPECT_EQ(unscale(array(DType::f64, f64), inverse, workers_), finite) << at << " " << bad;
        EXPECT_EQ(unscale(array(DType::f16, f16), inverse, workers_), finite) << at << " " << bad;
        EXPECT_EQ(unscale(array(DType::bf16, bf16), inverse, workers_), finite) << at << " " << bad;
      }
    }
  }
}

TEST_F(Unscale, LooksAtWhatItLeaves) {
  std::vector<uint16_t> values = {f16_of(40000)};
  EXPECT_FALSE(unscale(array(DType::f16, values), 2, workers_)) << "a scale below 1";
  EXPECT_EQ(values[0], 0x7C00);
}

TEST_F(Unscale, ByOneWritesNothing) {
  std::vector<float> values = {std::bit_cast<float>(uint32_t{1}), std::bit_cast<float>(uint32_t{0x7F800001})};  // denormal, signalling NaN
  EXPECT_FALSE(unscale(array(DType::f32, values), 1, workers_));
  EXPECT_EQ(std::bit_cast<uint32_t>(values[0]), 1U);
  EXPECT_EQ(std::bit_cast<uint32_t>(values[1]), 0x7F800001U);
}

TEST_F(Unscale, TouchesNothingBetweenTheElements) {
  for (const StridedCase& c : kStridedCases) {
    std::vector<float> values(64, 8), want = values;
    for (int64_t i = 0; i < c.shape[0]; ++i)
      for (int64_t j = 0; j < c.shape[c.shape.rank() - 1]; ++j)
        want[static_cast<size_t>(i * c.strides[0] + j * c.strides[static_cast<size_t>(c.shape.rank() - 1)])] = 2;
    EXPECT_TRUE(unscale({.dtype = DType::f32, .shape = c.shape, .strides = c.strides, .data = values.data()}, 0.25, workers_));
    EXPECT_EQ(values, want) << text(c.shape);
  }
}

TEST_F(Unscale, TakesAScalarAndNothing) {
  std::vector<float> one = {6};
  EXPECT_TRUE(unscale({.dtype = DType::f32, .shape = {}, .strides = {}, .data = one.data()}, 0.5, workers_));
  EXPECT_EQ(one[0], 3);
  EXPECT_TRUE(unscale({.dtype = DType::f32, .shape = {0, 4}, .strides = {4, 1}, .data = nullptr}, 0.5, workers_));
}

TEST_F(Unscale, RefusesIntegers) {
  std::vector<int32_t> values = {6};
  EXPECT_THROW(unscale(array(DType::i32, values), 0.5, workers_), Error);
}

}  // namespace
}  // namespace st
