#include "optim/lr_schedule.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace st {
namespace {

TEST(LrSchedule, RisesInEqualStepsFromTheFirstAndStays) {
  const LrSchedule schedule{.kind = "constant", .lr = 0.25, .warmup = 4};
  const double wanted[] = {0.0625, 0.125, 0.1875, 0.25, 0.25, 0.25};
  for (int64_t k = 0; k < 6; ++k) EXPECT_EQ(schedule.at(k), wanted[k]) << k;
  EXPECT_EQ(schedule.at(1'000'000'000), 0.25);
}

TEST(LrSchedule, WithoutWarmUpIsConstant) {
  const LrSchedule schedule{.kind = "constant", .lr = 0.1, .warmup = 0};
  EXPECT_EQ(schedule.at(0), 0.1);
  EXPECT_EQ(schedule.at(99), 0.1);
}

TEST(LrSchedule, RefusesAnUnknownKindByName) {
  const LrSchedule schedule{.kind = "cosinus", .lr = 0.1, .warmup = 0};
  try {
    schedule.at(0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_NE(error.message().find("cosinus"), std::string::npos);
  }
}

}  // namespace
}  // namespace st
