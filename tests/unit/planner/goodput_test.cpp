#include "planner/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

namespace st {
namespace {

/// The closed form of long runs with exponential times between failures, restarts that fail too (J. T. Daly, "A higher order estimate of
/// the optimum checkpoint interval for restart dumps", Future Generation Computer Systems 22, 2006).
double daly_share(double interval, double save, double restart, double mean) {
  return interval / (mean * std::exp(restart / mean) * std::expm1((interval + save) / mean));
}

TEST(Goodput, ARunWithoutLostNodesTakesItsStepsAndSaves) {
  const Goodput run = goodput(10, 128, {.save_seconds = 4, .steps_between_saves = 30, .steps = 100});
  EXPECT_EQ(run.seconds, 100 * 10 + 4 * 4);
  EXPECT_EQ(run.share, 1000.0 / 1016);
  EXPECT_EQ(run.saves, 4);
  EXPECT_EQ(run.lost_nodes + run.lost_steps, 0);
  EXPECT_EQ(goodput(10, 128, {}).share, 1);
}

/// Steps of 10 s, saved after every 3 in 2 s, 8 in all; by hand.
TEST(Goodput, StepsSinceTheLastCheckpointAreMadeAgain) {
  const auto lost = [](std::vector<double> at) {
    return goodput(10, 1, {.restart_seconds = 100, .save_seconds = 2, .steps_between_saves = 3, .steps = 8, .lost_at = std::move(at)});
  };
  const double alone = 8 * 10 + 3 * 2;
  struct Case {
    std::vector<double> at;
    int64_t nodes, steps;
    double repeating, restarting;
  };
  for (const auto& [at, nodes, steps, repeating, restarting] : {
           Case{{25}, 1, 3, 25, 100},                                               // in the third step
           Case{{31}, 1, 3, 31, 100},                                               // in the save after it
           Case{{32}, 1, 0, 0, 100},                                                // as it ends
           Case{{57, 157}, 2, 3 + 0, 25, 200},                                      // in the sixth, and as the restart ends
           Case{{57, 140}, 2, 3, 25, 83 + 100},                                     // in the restart, which begins anew
           Case{{45, 170}, 2, 2 + 3, 13 + 25, 200}, Case{{84.5}, 1, 2, 20.5, 100},  // in the last save
           Case{{86}, 0, 0, 0, 0},                                                  // after the run
       }) {
    SCOPED_TRACE(at.front());
    const Goodput run = lost(at);
    EXPECT_EQ(run.lost_nodes, nodes);
    EXPECT_EQ(run.lost_steps, steps);
    EXPECT_DOUBLE_EQ(run.repeating, repeating);
    EXPECT_DOUBLE_EQ(run.restarting, restarting);
    EXPECT_DOUBLE_EQ(run.seconds, alone + repeating + restarting);
    EXPECT_DOUBLE_EQ(run.share, 80 / run.seconds);
    EXPECT_EQ(run.steps, 8);
    EXPECT_EQ(run.saves, 3);
    EXPECT_TRUE(run.ends);
  }
}

/// 2,000 lost nodes: the mean of their losses is within 2.2 % of what is expected at one standard deviation; three are allowed.
TEST(Goodput, EqualsTheClosedFormInLongRuns) {
  for (const auto& [save, restart, every] :
       {std::tuple{10.0, 300.0, int64_t{106}}, {10.0, 300.0, int64_t{1000}}, {60.0, 20000.0, int64_t{400}}}) {
    SCOPED_TRACE(every);
    for (const int64_t seed : {0, 1}) {
      const Goodput run = goodput(
          10, 128, {.hours_between = 2000, .restart_seconds = restart, .save_seconds = save, .steps_between_saves = every, .seed = seed});
      const double share = daly_share(10.0 * static_cast<double>(every), save, restart, 2000 * 3600 / 128.0);
      EXPECT_NEAR(1 / run.share - 1, 1 / share - 1, 0.066 * (1 / share - 1));
      EXPECT_NEAR(static_cast<double>(run.lost_nodes), 2000 / share, 0.066 * 2000 / share);
      EXPECT_DOUBLE_EQ(run.seconds, 10 * static_cast<double>(run.steps) + run.saving + run.repeating + run.restarting);
    }
  }
}

/// The optimum is flat: with half or twice its interval a quarter of what saves and repeated steps cost is lost besides.
TEST(Goodput, FindsAnIntervalAsGoodAsTheClosedFormsOptimum) {
  for (const double save : {1.0, 30.0, 600.0}) {
    const double mean = 2000 * 3600 / 128.0, optimum = std::sqrt(2 * save * mean) - save;  // Daly, first order; Young 1974
    const auto run = [&](int64_t every, int64_t steps) {
      return goodput(10, 128, {.hours_between = 2000, .save_seconds = save, .steps_between_saves = every, .steps = steps});
    };
    const Goodput found = run(0, 0), best = run(std::llround(optimum / 10), 0);
    EXPECT_GE(found.share, best.share - 0.0005);
    EXPECT_NEAR(std::log2(10 * static_cast<double>(found.steps_between_saves) / optimum), 0, 0.5);
    EXPECT_EQ(run(0, 2000).steps_between_saves, found.steps_between_saves) << "a short run's own times do not choose";
  }
}

TEST(Goodput, TheSeedChoosesTheTimesAndTheIntervalDoesNot) {
  const auto run = [](int64_t seed, int64_t every) {
    return goodput(10, 128, {.hours_between = 200, .steps_between_saves = every, .steps = 20000, .seed = seed});
  };
  EXPECT_EQ(run(1, 50).seconds, run(1, 50).seconds);
  EXPECT_NE(run(1, 50).seconds, run(2, 50).seconds);
  EXPECT_LT(run(1, 20).repeating, run(1, 400).repeating);
}

TEST(Goodput, ARunThatLosesNodesFasterThanItSavesIsGivenUp) {
  const Goodput never = goodput(10, 1, {.hours_between = 1e-6, .steps = 100});
  EXPECT_FALSE(never.ends);
  EXPECT_EQ(never.share, 0);
}

}  // namespace
}  // namespace st
