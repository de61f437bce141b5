#include "base/interval.h"

#include <gtest/gtest.h>

#include <limits>

namespace st {
namespace {

TEST(Interval, HoldsItsSquareBoundsAndNoNaN) {
  constexpr double kEndless = std::numeric_limits<double>::infinity(), kNone = std::numeric_limits<double>::quiet_NaN();
  for (const double inside : {0.0, 0.5}) EXPECT_TRUE(is_inside(inside, "[0,1)")) << inside;
  for (const double outside : {-1e-300, 1.0, kNone, kEndless}) EXPECT_FALSE(is_inside(outside, "[0,1)")) << outside;
  EXPECT_FALSE(is_inside(0, "(0,inf)"));
  EXPECT_FALSE(is_inside(kEndless, "(0,inf)"));
  EXPECT_TRUE(is_inside(kEndless, "(0,inf]"));
  EXPECT_TRUE(is_inside(-kEndless, "[-inf,0]"));
  EXPECT_TRUE(is_inside(-100, "[-100,0]"));
}

}  // namespace
}  // namespace st
