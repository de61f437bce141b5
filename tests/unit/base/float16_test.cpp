#include "base/float16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/f16_rows.h"
#include "base/float_mode.h"

namespace st {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The value of a 16-bit float by definition: sign, exponent of `exponent_bits`, fraction.
double value_of(uint32_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(bits & ((1U << fraction_bits) - 1), -fraction_bits);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
}

struct Format {
  int exponent_bits;
  uint32_t infinity;
  float (*widen)(uint16_t);
  uint16_t (*round)(float);
};

const Format kFormats[] = {
    {8, 0x7F80, [](uint16_t bits) { return f32_of_bf16(bits); }, [](float value) { return bf16_of(value); }},
    {5, 0x7C00, [](uint16_t bits) { return f32_of_f16(bits); }, [](float value) { return f16_of(value); }},
};

TEST(Float16, WidensEveryValueExactly) {
  for (const auto& format : kFormats)
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const double expected = value_of(bits, format.exponent_bits);
      const float widened = format.widen(static_cast<uint16_t>(bits));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(widened)) << bits;
      } else {
        EXPECT_EQ(static_cast<double>(widened), expected) << bits;
        EXPECT_EQ(std::signbit(widened), (bits & 0x8000) != 0) << bits;
      }
    }
}

TEST(Float16, ReturnsEveryValueToItself) {
  for (const auto& format : kFormats)
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float widened = format.widen(static_cast<uint16_t>(bits));
      const uint16_t back = format.round(widened);
      if (std::isnan(widened)) {
        EXPECT_TRUE(std::isnan(format.widen(back))) << bits;
        EXPECT_EQ(back & 0x8000U, bits & 0x8000U) << bits;
      } else {
        EXPECT_EQ(back, bits);
      }
    }
}

// Rounding is monotone, so testing its boundaries suffices: between two neighbours everything below the middle rounds down, everything
// above rounds up, and the middle to the even one. The last finite value's upper neighbour would be the next one, and it is infinity.
TEST(Float16, RoundsToNearestEvenAtEveryBoundary) {
  for (const auto& format : kFormats)
    for (uint32_t bits = 0; bits < format.infinity; ++bits) {
      const double low = value_of(bits, format.exponent_bits);
      const double high =
          bits + 1 < format.infinity ? value_of(bits + 1, format.exponent_bits) : 2 * low - value_of(bits - 1, format.exponent_bits);
      const auto middle = static_cast<float>(low / 2 + high / 2);  // exact: fp32 has bits to spare
      for (const float sign : {1.0F, -1.0F}) {
        const uint32_t minus = sign < 0 ? 0x8000 : 0;
        ASSERT_EQ(format.round(sign * middle), (bits + (bits & 1)) | minus) << bits;
        ASSERT_EQ(format.round(sign * std::nextafter(middle, 0.0F)), bits | minus) << bits;
        ASSERT_EQ(format.round(sign * std::nextafter(middle, kInfinity)), (bits + 1) | minus) << bits;
      }
    }
}

TEST(Float16, KeepsNanAndItsSign) {
  for (const auto& format : kFormats)
    for (uint32_t fraction = 1; fraction < (1U << 23); fraction = fraction * 2 + 1)
      for (const uint32_t sign : {0U, 0x80000000U}) {
        const uint16_t rounded = format.round(std::bit_cast<float>(sign | 0x7F800000 | fraction));
        EXPECT_GT(rounded & 0x7FFFU, format.infinity);
        EXPECT_EQ(rounded >> 15, sign >> 31);
      }
}

TEST(Float16, DoesNotDependOnTheFloatMode) {
  const FloatMode flush;
  EXPECT_EQ(bf16_of(f32_of_bf16(0x0001)), 0x0001);
  EXPECT_EQ(f16_of(f32_of_f16(0x0001)), 0x0001);
}

static_assert(f32_of_f16(0x3C00) == 1.0F && f16_of(65504.0F) == 0x7BFF && bf16_of(1.0F) == 0x3F80);

TEST(F16Rows, EveryWayGivesTheBitsOfOneAfterAnother) {
  constexpr int64_t kHalves = 65536, kFloats = 1 << 18;
  std::vector<uint32_t> wide(kHalves), floats(kFloats);
  std::vector<uint16_t> halves(kHalves), narrow(kFloats);
  for (uint32_t i = 0; i < kHalves; ++i) {
    halves[i] = static_cast<uint16_t>(i);
    wide[i] = std::bit_cast<uint32_t>(f32_of_f16(halves[i]));
  }
  for (uint32_t i = 0; i < kFloats; ++i) {
    floats[i] = i * 16411;  // all exponents; NaNs of both kinds
    if (i % 4 == 0) floats[i] = std::bit_cast<uint32_t>(f32_of_f16(static_cast<uint16_t>(i / 4))) + 0x1000 + i / 4 % 3 - 1;  // boundaries
    narrow[i] = f16_of(std::bit_cast<float>(floats[i]));
  }
  const auto bytes_of = [](const auto& row) { return reinterpret_cast<const std::byte*>(row.data()); };
  const auto equal = [&](const std::vector<std::byte>& row, const auto& expected, const char* name) {
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(std::memcmp(&row[1 + i * sizeof expected[0]], &expected[i], sizeof expected[0]), 0) << name << ", element " << i;
  };
  for (const F16Implementation& way : f16_ways()) {
    if (!way.is_here()) continue;
    const FloatMode mode;  // fp32 denormals are zeros in this mode
    std::vector<std::byte> row(kFloats * 4 + 1);
    for (const int64_t n : {kHalves, kHalves - 5}) {  // odd addresses, and a partial vector
      way.widen(bytes_of(halves), &row[1], n);
      equal(row, wide, way.name);
    }
    for (const int64_t n : {kFloats, kFloats - 3}) {
      way.narrow(bytes_of(floats), &row[1], n);
      equal(row, narrow, way.name);
    }
  }
}

}  // namespace
}  // namespace st
