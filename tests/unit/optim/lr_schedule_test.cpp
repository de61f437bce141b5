// Schedules against their formulas, and refused options. lr_schedule_fixture_test.cpp compares those that PyTorch has with its numbers.
#include "optim/lr_schedule.h"
#include "refusal.h"

#include <cmath>
#include <numbers>

namespace st {
namespace {

constexpr int64_t kFar = 1'000'000'000'000;
constexpr const char* kWithLength[] = {"linear", "cosine", "polynomial", "wsd", "one_cycle"};

/// A few roundings of doubles, for a formula in another order.
constexpr double kRoundings = 1e-15;

LrScheduleOptions hundred_steps(const char* schedule) {
  return {.lr_schedule = schedule, .lr = 0.5, .warmup = 20, .lr_steps = 100, .lr_min = 0.125, .lr_decay_steps = 40};
}

testing::AssertionResult schedule_refused(const LrScheduleOptions& options, std::initializer_list<std::string_view> words) {
  return refuses(words, [&] { const LrSchedule schedule(options); });
}

TEST(LrSchedule, RisesInEqualStepsFromTheFirstAndStays) {
  const LrSchedule schedule({.lr_schedule = "constant", .lr = 0.25, .warmup = 4});
  const double wanted[] = {0.0625, 0.125, 0.1875, 0.25, 0.25, 0.25};
  for (int64_t k = 0; k < 6; ++k) EXPECT_EQ(schedule.at(k), wanted[k]) << k;
  EXPECT_EQ(schedule.at(kFar), 0.25);
}

TEST(LrSchedule, WithoutWarmUpIsConstant) {
  const LrSchedule schedule({.lr_schedule = "constant", .lr = 0.1, .warmup = 0});
  EXPECT_EQ(schedule.at(0), 0.1);
  EXPECT_EQ(schedule.at(99), 0.1);
}

TEST(LrSchedule, EachWarmsUpByTheSameLaw) {
  for (const char* word : {"linear", "cosine", "polynomial", "wsd", "inverse_sqrt"}) {
    const LrSchedule schedule(hundred_steps(word));
    for (int64_t k = 0; k < 20; ++k) EXPECT_EQ(schedule.at(k), 0.5 * static_cast<double>(k + 1) / 20) << word << " " << k;
  }
  LrScheduleOptions options = hundred_steps("table");
  options.lr_table = "0:0.25 10:0.5";
  for (int64_t k = 0; k < 20; ++k)
    EXPECT_EQ(LrSchedule(options).at(k), (k < 10 ? 0.25 : 0.5) * (static_cast<double>(k + 1) / 20)) << "table " << k;
  for (int64_t k = 0; k < 20; ++k)
    EXPECT_EQ(LrSchedule(hundred_steps("one_cycle")).at(k), 0.5 / 25 * (static_cast<double>(k + 1) / 20)) << "one_cycle " << k;
}

TEST(LrSchedule, GoesOnBehindItsWarmUpAsAnotherOfTheRestWould) {
  for (const char* word : {"linear", "cosine", "polynomial", "one_cycle"}) {
    LrScheduleOptions options = hundred_steps(word);
    options.lr_power = 1.5;
    const LrSchedule warm(options);
    options.warmup = 0;
    options.lr_steps = 80;
    const LrSchedule cold(options);
    for (int64_t k = 20; k < 120; ++k) EXPECT_EQ(warm.at(k), cold.at(k - 20)) << word << " " << k;
  }
}

TEST(LrSchedule, StaysAtItsEndAfterItsLastStep) {
  for (const char* word : {"linear", "cosine", "polynomial", "wsd"}) {
    const LrSchedule schedule(hundred_steps(word));
    EXPECT_GT(schedule.at(99), 0.125) << word;
    for (const int64_t k : {int64_t{100}, int64_t{101}, kFar}) EXPECT_EQ(schedule.at(k), 0.125) << word << " " << k;
  }
  LrScheduleOptions cycles = hundred_steps("cosine");
  for (const int64_t growth : {1, 2}) {
    cycles.lr_cycles = 3;
    cycles.lr_cycle_growth = growth;
    EXPECT_EQ(LrSchedule(cycles).at(100), 0.125);
    EXPECT_EQ(LrSchedule(cycles).at(kFar), 0.125);
  }
  const LrSchedule one_cycle(hundred_steps("one_cycle"));  // its last step is already at the end, as in PyTorch
  for (const int64_t k : {int64_t{99}, int64_t{100}, kFar}) EXPECT_DOUBLE_EQ(one_cycle.at(k), 0.5 / 25 / 1e4) << k;
}

TEST(LrSchedule, CyclesBeginAgainAtTheTop) {
  LrScheduleOptions options = hundred_steps("cosine");
  options.lr_cycles = 4;  // of 80 / 4 steps
  const LrSchedule equal(options);
  for (const int64_t k : {20, 40, 60, 80}) EXPECT_EQ(equal.at(k), 0.5) << k;
  for (const int64_t k : {30, 50, 70, 90}) EXPECT_NEAR(equal.at(k), 0.3125, kRoundings) << k << ", half way";
  for (const int64_t k : {39, 59, 79, 99})
    EXPECT_NEAR(equal.at(k), 0.125 + 0.375 * (1 + std::cos(std::numbers::pi * 19 / 20)) / 2, kRoundings) << k;
  options.lr_steps = 20 + 5 + 15 + 45;
  options.lr_cycles = options.lr_cycle_growth = 3;
  const LrSchedule growing(options);
  for (const int64_t k : {20, 25, 40}) EXPECT_EQ(growing.at(k), 0.5) << k;
  EXPECT_NEAR(growing.at(28), 0.125 + 0.375 * (1 + std::cos(std::numbers::pi * 3 / 15)) / 2, kRoundings);
}

// A cycle may end between two steps: 100 steps in 3 cycles.
TEST(LrSchedule, CyclesNeedNotEndOnAStep) {
  LrScheduleOptions options = hundred_steps("cosine");
  options.warmup = 0;
  options.lr_cycles = 3;
  const LrSchedule schedule(options);
  const auto at = [](double share) { return 0.125 + 0.375 * (1 + std::cos(std::numbers::pi * share)) / 2; };
  EXPECT_NEAR(schedule.at(33), at(0.99), kRoundings);
  EXPECT_NEAR(schedule.at(34), at(0.02), kRoundings);
  EXPECT_NEAR(schedule.at(66), at(0.98), kRoundings);
  EXPECT_NEAR(schedule.at(67), at(0.01), kRoundings);
}

TEST(LrSchedule, InverseSqrtFallsFromTheWarmUpsTopToItsBound) {
  LrScheduleOptions options = hundred_steps("inverse_sqrt");
  options.lr_steps = 0;
  const LrSchedule schedule(options);
  EXPECT_EQ(schedule.at(19), 0.5);
  EXPECT_EQ(schedule.at(79), 0.25) << "four times as many steps, half the rate";
  EXPECT_NEAR(schedule.at(20), 0.5 * std::sqrt(20.0 / 21), kRoundings);
  EXPECT_EQ(schedule.at(319), 0.125);
  EXPECT_EQ(schedule.at(kFar), 0.125) << "lr_min";
  options.warmup = 0;
  EXPECT_EQ(LrSchedule(options).at(0), 0.5);
  EXPECT_EQ(LrSchedule(options).at(3), 0.25);
}

TEST(LrSchedule, WsdStaysAndThenFallsInItsLastSteps) {
  LrScheduleOptions options = hundred_steps("wsd");
  const auto shape = [](const std::string& decay, double x) {
    if (decay == "linear") return 1 - x;
    return decay == "cosine" ? (1 + std::cos(std::numbers::pi * x)) / 2 : 1 - std::sqrt(x);
  };
  for (const char* decay : {"linear", "cosine", "1-sqrt"}) {
    options.lr_decay = decay;
    const LrSchedule schedule(options);
    for (int64_t k = 20; k <= 60; ++k) EXPECT_EQ(schedule.at(k), 0.5) << decay << " " << k;
    for (int64_t k = 61; k <= 100; ++k)
      EXPECT_NEAR(schedule.at(k), 0.125 + 0.375 * shape(decay, static_cast<double>(k - 60) / 40), kRoundings) << decay << " " << k;
  }
}

TEST(LrSchedule, ATableHoldsEachRateUntilTheNext) {
  const LrSchedule schedule({.lr_schedule = "table", .lr = 7, .warmup = 0, .lr_table = "0:1e-3 100:5e-4,1000:0"});
  EXPECT_EQ(schedule.at(0), 1e-3);
  EXPECT_EQ(schedule.at(99), 1e-3);
  EXPECT_EQ(schedule.at(100), 5e-4);
  EXPECT_EQ(schedule.at(999), 5e-4);
  EXPECT_EQ(schedule.at(1000), 0);
  EXPECT_EQ(schedule.at(kFar), 0);
}

TEST(LrSchedule, RefusesAnUnknownKindByName) {
  EXPECT_TRUE(schedule_refused({.lr_schedule = "cosinus"}, {"lr_schedule", "cosinus", "cosine", "one_cycle"}));
  LrScheduleOptions options = hundred_steps("wsd");
  options.lr_decay = "sqrt";
  EXPECT_TRUE(schedule_refused(options, {"lr_decay", "\"sqrt\"", "1-sqrt"}));
}

TEST(LrSchedule, RefusesALengthThatItNeedsAndThatIsNotThere) {
  for (const char* word : kWithLength) {
    LrScheduleOptions options = hundred_steps(word);
    options.lr_steps = 0;
    EXPECT_TRUE(schedule_refused(options, {word, "needs lr_steps", "unset"}));
  }
  LrScheduleOptions options = hundred_steps("wsd");
  options.lr_decay_steps = 0;
  EXPECT_TRUE(schedule_refused(options, {"wsd", "needs lr_decay_steps", "unset"}));
  EXPECT_TRUE(schedule_refused({.lr_schedule = "table"}, {"needs lr_table", "empty"}));
}

TEST(LrSchedule, RefusesContradictionsWithTheirNumbers) {
  for (const char* word : kWithLength) {
    LrScheduleOptions options = hundred_steps(word);
    options.warmup = 100;
    EXPECT_TRUE(schedule_refused(options, {word, "warmup 100", "lr_steps 100"}));
  }
  for (const char* word : {"linear", "cosine", "polynomial", "wsd", "inverse_sqrt"}) {
    LrScheduleOptions options = hundred_steps(word);
    options.lr_min = 0.75;
    EXPECT_TRUE(schedule_refused(options, {word, "lr_min 0.75", "lr 0.5"}));
  }
  LrScheduleOptions options = hundred_steps("wsd");
  options.lr_decay_steps = 81;
  EXPECT_TRUE(schedule_refused(options, {"lr_decay_steps 81", "warmup 20", "lr_steps 100"}));
  options = hundred_steps("cosine");
  options.lr_cycles = 81;
  EXPECT_TRUE(schedule_refused(options, {"81 lr_cycles", "80 steps", "lr_steps 100", "warmup 20"}));
  options.lr_cycles = 7;
  options.lr_cycle_growth = 2;  // at least 127 steps
  EXPECT_TRUE(schedule_refused(options, {"7 lr_cycles", "2 times", "80 steps"}));
  options = hundred_steps("one_cycle");
  options.lr_div_factor = 1e-309;
  EXPECT_TRUE(schedule_refused(options, {"lr 0.5", "lr_div_factor 1e-309", "inf"}));
}

TEST(LrSchedule, RefusesATableThatIsNone) {
  const auto table = [](const char* text) { return LrScheduleOptions{.lr_schedule = "table", .lr_table = text}; };
  EXPECT_TRUE(schedule_refused(table("0:1 100:0.5 50:0.25"), {"step 50", "after step 100"}));
  EXPECT_TRUE(schedule_refused(table("0:1 0:2"), {"step 0", "after step 0", "once"}));
  EXPECT_TRUE(schedule_refused(table("10:1"), {"must be for step 0, got step 10"}));
  EXPECT_TRUE(schedule_refused(table("-1:1"), {"must be for step 0, got step -1"}));
  EXPECT_TRUE(schedule_refused(table("0:-0.5"), {"from step 0", "-0.5"}));
  EXPECT_TRUE(schedule_refused(table("0:1 5:nan"), {"from step 5", "nan"}));
  EXPECT_TRUE(schedule_refused(table("0:1 5:inf"), {"from step 5", "inf"}));
  for (const char* text : {"1e-3", "0:", ":1", "0:1e-3x", "0 :1", "zero:1", "0:1;5:2", "99999999999999999999:1", "0:1:2"})
    EXPECT_TRUE(schedule_refused(table(text), {"STEP:LR", "0:1e-3 100:5e-4"})) << text;
}

TEST(LrSchedule, DoesNotLookAtWhatItDoesNotUse) {
  const LrSchedule schedule({.lr_schedule = "constant", .lr = 0.5, .warmup = 0, .lr_steps = 3, .lr_min = 9, .lr_table = "no table"});
  EXPECT_EQ(schedule.at(7), 0.5);
}

}  // namespace
}  // namespace st
