// Functions whose bits every processor and device has alike: powers by squaring, and roundings of a double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/float16.h"
#include "base/narrowing.h"
#include "base/whole_power.h"

namespace st {
namespace {

TEST(WholePower, IsThatOfTheMathematicsWithinItsBound) {
  EXPECT_EQ(whole_power(0.9, 0), 1);
  EXPECT_EQ(whole_power(0.9, 1), 0.9);
  EXPECT_EQ(whole_power(0.5, 10), 0x1p-10);
  EXPECT_EQ(whole_power(0, 3), 0);
  EXPECT_EQ(whole_power(1, 1000000), 1);
  for (const double base : {0.1, 0.9, 0.99, 0.999, 0.9999})
    for (const uint64_t exponent : {2U, 3U, 7U, 100U, 1000U, 12345U}) {
      const long double wanted = powl(base, static_cast<long double>(exponent));
      if (wanted < std::numeric_limits<double>::min()) continue;
      EXPECT_LE(std::abs(whole_power(base, exponent) - wanted), wanted * 2 * static_cast<long double>(exponent) * 0x1p-53L)
          << base << " " << exponent;
    }
}

TEST(Narrowing, RoundsToOddSoThatTheSecondRoundingIsTheOnly) {
  EXPECT_EQ(odd_float_of(1), 1.0F);
  EXPECT_EQ(odd_float_of(1 + 0x1p-40), 1 + 0x1p-23F);
  EXPECT_EQ(odd_float_of(-1 - 0x1p-40), -1 - 0x1p-23F);
  EXPECT_EQ(odd_float_of(1 - 0x1p-40), 1 - 0x1p-24F);
  EXPECT_TRUE(std::isnan(odd_float_of(std::nan(""))));
  // Just above the middle of two bf16 numbers, which rounding to fp32 first would round down to the even one.
  const double above_middle = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(bf16_of(static_cast<float>(above_middle)), 0x3F80);
  EXPECT_EQ(bf16_of(odd_float_of(above_middle)), 0x3F81);
}

TEST(Narrowing, TruncatesToTheRangeOfAnInteger) {
  EXPECT_EQ(truncate_to<int32_t>(-2.9), -2);
  EXPECT_EQ(truncate_to<int32_t>(1e10), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(truncate_to<uint8_t>(-1), 0);
  EXPECT_EQ(truncate_to<int64_t>(-std::numeric_limits<double>::infinity()), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(truncate_to<int64_t>(std::nan("")), 0);
}

}  // namespace
}  // namespace st
