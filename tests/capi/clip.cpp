// Clipping alone, over host arrays.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "small_run.h"

namespace st::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

st_view vector_of(std::vector<float>& values, const int64_t* dims) {
  return {ST_F32, 1, dims, nullptr, values.data(), static_cast<int64_t>(values.size() * 4)};
}

HeldContext context_of(int32_t threads, const char* device = "cpu") {
  auto options = filled(st_context_options_init);
  options.threads = threads;
  options.device = device;
  return hold<HeldContext>(st_context_create, &options);
}

/// Magnitudes over nine decades.
std::vector<float> some_gradient(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  uint32_t state = seed;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = (static_cast<float>(state >> 8) / 0x1p23F - 1) * std::pow(10.0F, -static_cast<float>(state % 10));
  }
  return values;
}

// traps.md T13: within 1e-12 of a double-precision norm; the same for any number of threads and on the reference device.
TEST(CClipNorm, IsTheDoubleNormWithTheSameBitsForAnyThreads) {
  std::vector<float> a = some_gradient(200003, 1), b = some_gradient(77, 2);
  const int64_t a_dims[] = {200003}, b_dims[] = {77};
  const st_view views[] = {vector_of(a, a_dims), vector_of(b, b_dims)};
  long double squares = 0;
  for (const auto* values : {&a, &b})
    for (const float g : *values) squares += static_cast<long double>(g) * g;
  const double wanted = static_cast<double>(std::sqrt(squares));
  const auto first = asked<double>(st_clip_norm, context_of(1), 2, views, 0);
  EXPECT_NEAR(first, wanted, 1e-12 * wanted);
  for (const int32_t threads : {1, 2, 3, 4})
    for (const char* device : {"cpu", "reference"}) {
      EXPECT_EQ(asked<double>(st_clip_norm, context_of(threads, device), 2, views, 0), first) << threads << " threads on " << device;
    }
}

TEST(CClipNorm, ScalesEveryElementByTheFactorRoundedOnce) {
  const auto context = context_of(2);
  std::vector<float> a = some_gradient(70001, 3), b = {3, -4};
  const std::vector<float> a_before = a, b_before = b;
  const int64_t a_dims[] = {70001}, b_dims[] = {2};
  const st_view views[] = {vector_of(a, a_dims), vector_of(b, b_dims)};
  double norm = 0, after = 0;
  ASSERT_TRUE(works(st_clip_norm(context, 2, views, 2.5, &norm)));
  const auto factor = static_cast<float>(2.5 / (norm + 1e-6));  // torch's, in double
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], a_before[i] * factor) << i;
  for (size_t i = 0; i < b.size(); ++i) EXPECT_EQ(b[i], b_before[i] * factor);
  ASSERT_TRUE(works(st_clip_norm(context, 2, views, 0, &after)));
  EXPECT_NEAR(after, 2.5, 2.5e-6);
}

// 1 / norm is below fp32's normal range.
TEST(CClipNorm, ClipsTheLargestGradients) {
  const auto context = context_of(1);
  std::vector<float> a(10'000, 3e38F);
  const int64_t dims[] = {10'000};
  const st_view view = vector_of(a, dims);
  EXPECT_NEAR(asked<double>(st_clip_norm, context, 1, &view, 1), 3e40, 1e34);
  for (const float element : a) ASSERT_NEAR(element, 0.01F, 1e-7);
}

TEST(CClipNorm, WritesNothingWhereTheNormIsSmallerOrMaxIsZero) {
  const auto context = context_of(1);
  std::vector<float> a = {3, 4, 1e-40F};  // a denormal, which a product would flush to 0
  const std::vector<float> before = a;
  const int64_t dims[] = {3};
  const st_view view = vector_of(a, dims);
  for (const double max : {0.0, 6.0, static_cast<double>(kInf)}) {
    EXPECT_EQ(asked<double>(st_clip_norm, context, 1, &view, max), 5) << max;
    EXPECT_EQ(a, before) << max;
  }
  EXPECT_EQ(asked<double>(st_clip_norm, context, 0, nullptr, 1), 0);
}

TEST(CClipNorm, SaysANormThatIsNotFiniteAndLeavesTheGradients) {
  const auto context = context_of(2);
  const int64_t dims[] = {4};
  for (const float bad : {kInf, -kInf, kNaN}) {
    std::vector<float> a = {1, bad, 2, -kInf};
    const std::vector<float> before = a;
    const st_view view = vector_of(a, dims);
    EXPECT_FALSE(std::isfinite(asked<double>(st_clip_norm, context, 1, &view, 1)));
    EXPECT_EQ(std::memcmp(a.data(), before.data(), 16), 0);
  }
}

TEST(CClipNorm, TakesEveryFloatingTypeAndStrides) {
  const auto context = context_of(2);
  const int64_t two[] = {2}, one[] = {1}, three_by_two[] = {3, 2}, by_columns[] = {1, 4};
  float strided[] = {1, 2, 2, 99, 1, 1, 1, 99};  // 3 of 4 columns
  double f64[] = {1, 1};
  uint16_t f16[] = {0x3C00}, bf16[] = {0x3F80};  // 1
  const st_view views[] = {{ST_F32, 2, three_by_two, by_columns, strided, sizeof strided},
                           {ST_F64, 1, two, nullptr, f64, sizeof f64},
                           {ST_F16, 1, one, nullptr, f16, sizeof f16},
                           {ST_BF16, 1, one, nullptr, bf16, sizeof bf16}};
  EXPECT_EQ(asked<double>(st_clip_norm, context, 4, views, 2), 4);  // 1 + 4 + 4 + 1 + 1 + 1 + 1 + 1 + 1 + 1 = 16
  const float half = 2 / 4.000001F;
  EXPECT_EQ(strided[1], 2 * half);
  EXPECT_EQ(strided[3], 99);
  EXPECT_EQ(strided[6], half);
  EXPECT_EQ(strided[7], 99);
  EXPECT_EQ(f64[1], static_cast<double>(half));
  EXPECT_EQ(f16[0], 0x3800);
  EXPECT_EQ(bf16[0], 0x3F00);
}

// The sum is over row-major elements, so strides change no bit.
TEST(CClipNorm, OfATransposedCopyHasTheSameBits) {
  const auto context = context_of(2);
  constexpr int64_t kRows = 300, kColumns = 250;
  std::vector<float> plain = some_gradient(kRows * kColumns, 5), turned(plain.size());
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) turned[static_cast<size_t>(j * kRows + i)] = plain[static_cast<size_t>(i * kColumns + j)];
  const int64_t dims[] = {kRows, kColumns}, strides[] = {1, kRows};
  const st_view a = {ST_F32, 2, dims, nullptr, plain.data(), kRows * kColumns * 4},
                b = {ST_F32, 2, dims, strides, turned.data(), kRows * kColumns * 4};
  double wanted = 0, found = 0;
  ASSERT_TRUE(works(st_clip_norm(context, 1, &a, 0.5, &wanted)));
  ASSERT_TRUE(works(st_clip_norm(context, 1, &b, 0.5, &found)));
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(turned[1], plain[kColumns]);
}

// Other views that are no gradients: CLossScaler.BadGradientsAreNamedAndNothingIsWritten.
TEST(CClipNorm, BadInputIsNamedAndNothingIsWritten) {
  const auto context = context_of(1);
  std::vector<float> a = {30, 40};
  const std::vector<float> before = a;
  const int64_t dims[] = {2};
  const st_view views[] = {vector_of(a, dims), vector_of(a, dims)};
  double norm = -1;
  const auto refused = [&](int64_t n, double max, std::initializer_list<std::string_view> words) {
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_clip_norm(context, n, views, max, &norm), words));
    EXPECT_EQ(norm, -1);
    EXPECT_EQ(a, before);
  };
  refused(2, 1, {"gradient 0", "gradient 1", "share memory"});
  refused(1, -1, {"max_norm must be at least 0, got -1"});
  refused(1, kNaN, {"max_norm must be at least 0", "nan"});
  refused(-1, 1, {"n is -1"});
}

}  // namespace
}  // namespace st::test
