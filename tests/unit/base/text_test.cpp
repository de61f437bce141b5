#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <clocale>
#include <cstdio>
#include <limits>

namespace st {
namespace {

TEST(Text, WritesNumbersAsPrintfDoesInTheCLocale) {
  ASSERT_STREQ(std::setlocale(LC_ALL, nullptr), "C");
  using Limits = std::numeric_limits<double>;
  for (const double number : {0.0, -0.0, 1.0, 0.5, -0.1, 1.0 / 3, 123456789.0, 1234567890.0, 1e-4, 1e-5, 1e300, 5e-324, Limits::max(),
                              Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    std::array<char, 40> wanted;
    std::snprintf(wanted.data(), wanted.size(), "%.9g", number);
    EXPECT_EQ(text(number), wanted.data());
  }
}

TEST(Text, WritesBytesForPeople) {
  EXPECT_EQ(text_of_bytes(0), "0 B");
  EXPECT_EQ(text_of_bytes(1023), "1023 B");
  EXPECT_EQ(text_of_bytes(1536), "1.50 KiB");
  EXPECT_EQ(text_of_bytes(int64_t{3} << 30), "3.00 GiB");
  EXPECT_EQ(text_of_bytes(INT64_MAX), "8388608.00 TiB");
}

}  // namespace
}  // namespace st
