// Ranks that share a step's micro-batches have the losses and state of one rank, bitwise (traps.md, T7: data parallel), for each number of
// ranks, bucket and number of threads. With --reduce step: zero_test.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <thread>

#include "rank_training.h"
#include "sanitized.h"

namespace st {
namespace {

class DataParallel : public testing::TestWithParam<Case> {};

TEST_P(DataParallel, LeavesTheBitsOfOneRank) {
  const Outcome alone = outcome_of(*training_of(GetParam(), 1).trainer());
  expect_skips_and_updates(GetParam(), alone);
  const auto expect_the_same = [&](int64_t zero, std::initializer_list<int64_t> all) {
    for (const int64_t ranks : all) {
      Training training = training_of(GetParam(), ranks);
      training.recipe.zero = zero;
      EXPECT_EQ(outcome_of(*training.trainer()), alone) << ranks << " ranks, zero " << zero;
    }
  };
  expect_the_same(0, {2, 5});
  expect_the_same(3, {3});
  if (kSanitized) return;  // the other stages are in zero_test.cpp
  expect_the_same(1, {8});
  expect_the_same(2, {4});
  if (std::getenv("ST_LONG_TRIALS") == nullptr && !GetParam().keys.empty()) return;
  expect_the_same(0, {3, 4, 8});
  expect_the_same(1, {3});
  expect_the_same(2, {2, 5});
  expect_the_same(3, {4});
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, DataParallel,
    testing::Values(
        Case{.name = "fp32", .keys = {}}, Case{.name = "one_round", .keys = {}, .micro_batches = 3},
        Case{.name = "bf16", .keys = {{"precision", "\"bf16\""}}}, Case{.name = "fp16", .keys = skipping_fp16()},
        Case{.name = "fp16_that_grows",  // T11, T14: the scale grows after each update, and the next step is skipped
             .keys = {{"precision", "\"fp16\""}, {"loss_scale_initial", "2097152"}, {"loss_scale_growth_interval", "1"}}},
        Case{.name = "dropout", .keys = {{"dropout", "0.2"}}}, Case{.name = "small_buckets", .keys = {{"bucket", "4096"}}},
        Case{.name = "one_bucket", .keys = {{"bucket", "268435456"}}}, Case{.name = "ragged", .keys = {}, .ignored = true},
        Case{.name = "recompute", .keys = {{"recompute", "\"blocks\""}}},
        Case{.name = "recompute_auto", .keys = {{"recompute", "\"auto\""}, {"bucket", "20000"}}, .half_budget = true},
        Case{.name = "muon", .keys = {{"optimizer", "\"muon\""}}},
        Case{.name = "eight_bits", .keys = {{"optimizer", "\"adamw-8bit\""}}, .width = kCodedWidth},
        Case{.name = "average", .keys = {{"ema_decay", "0.9"}}}, Case{.name = "adafactor", .keys = {{"optimizer", "\"adafactor\""}}},
        Case{.name = "average_of_bf16", .keys = {{"precision", "\"bf16\""}, {"residual_dtype", "\"bf16\""}, {"ema_decay", "0.9"}}},
        Case{.name = "groups", .keys = {{"groups", R"([{"pattern": "*.bias", "weight_decay_scale": 0, "clip": 0.1},
                                           {"pattern": "block.1.*", "lr_scale": 0.5, "clip": 0.3, "optimizer": "sgd"}])"}}},
        Case{.name = "other_optimizers",
             .keys = {{"groups", R"([{"pattern": "block.0.mlp.*", "optimizer": "lion"}, {"pattern": "block.0.*", "optimizer": "rmsprop"},
                                           {"pattern": "block.1.mlp.*", "optimizer": "adagrad"}, {"pattern": "block.1.*", "optimizer": "adam"}])"}}},
        Case{.name = "seven_micro_batches", .keys = {}, .micro_batches = 7},
        Case{.name = "frozen", .keys = {{"groups", R"([{"pattern": "block.0.*", "frozen": true}])"}}}),
    [](const testing::TestParamInfo<Case>& its) { return its.param.name; });

TEST(DataParallelStep, ThatExchangesBesideBackwardHasTheBitsOfOneThatWaits) {
  for (const int64_t ranks : {2, 3})
    for (const char* reduce : {"\"micro\"", "\"step\""})
      for (const int64_t micro_batches : {3, 8})
        for (const int64_t zero : {0, 1, 2, 3}) {
          // A quarter of the combinations, all pairs.
          const bool is_long = micro_batches == 8, is_odd = zero % 2 == 1, is_cut_early = zero >= 2;
          if ((ranks == 3) != (is_long != is_odd) || (reduce[1] == 'm') != (is_long != is_cut_early)) continue;
          const auto of = [&](const char* overlap) {
            Training training = training_of(
                {.name = "", .keys = {{"reduce", reduce}, {"bucket", "20000"}, {"overlap", overlap}}, .micro_batches = micro_batches},
                ranks);
            training.recipe.zero = zero;
            return outcome_of(*training.trainer());
          };
          EXPECT_EQ(of("\"on\""), of("\"off\""))
              << ranks << " ranks, " << reduce << ", " << micro_batches << " micro-batches, zero " << zero;
        }
}

TEST(DataParallelStep, OfFewerRowsIsThatOfOneRank) {
  const auto outcome = [](int64_t ranks, int64_t rows, const char* reduce) {
    return outcome_of_rows(*training_of({.name = "", .keys = {{"reduce", reduce}}}, ranks).trainer(false), {rows, rows});
  };
  for (const int64_t rows : {1, 2, 5, 11, 16}) {
    const Outcome alone = outcome(1, rows, "\"micro\"");
    for (const int64_t ranks : {2, 3, 5}) EXPECT_EQ(outcome(ranks, rows, "\"micro\""), alone) << rows << " rows on " << ranks << " ranks";
    // With at most one micro-batch per rank, no rank accumulates on its own.
    if (rows <= 5) {
      EXPECT_EQ(outcome(3, rows, "\"step\""), alone) << rows << " rows, once a step";
    }
  }
}

TEST(DataParallelStep, ThatIsCancelledIsUndoneOnAllRanks) {
  const Outcome whole = outcome_of(*training_of({.name = "", .keys = {}}, 3).trainer());
  const auto trainer = training_of({.name = "", .keys = {}}, 3).trainer();
  trainer->cancel();
  EXPECT_EQ(code_of([&] { trainer->step(); }), Code::cancelled);
  EXPECT_EQ(outcome_of(*trainer), whole);
}

TEST(DataParallelStep, WhoseRowsFailOnOneRankFailsOnceAndGoesOn) {
  const Training training = training_of({.name = "", .keys = {}}, 4);
  const Outcome whole = outcome_of(*training.trainer());
  std::atomic<int> fills = 0;
  const auto trainer = trainer_of(training, [&] {
    if (fills.fetch_add(1) == 9) fail(Code::callback, "the rows are not there");
  });
  const Outcome outcome = outcome_with_a_failure(*trainer, [](const Error& error) {
    EXPECT_EQ(error.code(), Code::callback) << error.message();
    EXPECT_GE(error.place.rank, 0);
  });
  EXPECT_EQ(outcome, whole);
}

TEST(DataParallelStep, TellsWhereItsTimeWent) {
  const auto third_step = [](int64_t ranks, int64_t micro_batches, std::vector<StepTimes>* timeline = nullptr) {
    const auto trainer = trainer_of(training_of({.name = "", .keys = {}, .micro_batches = micro_batches}, ranks),
                                    [] { std::this_thread::sleep_for(std::chrono::milliseconds(60)); });
    trainer->step();  // uses up the rows filled before it began
    trainer->step();
    StepReport third = trainer->step();
    if (timeline != nullptr) timeline->assign(trainer->timeline().begin(), trainer->timeline().end());
    return third;
  };
  std::vector<StepTimes> timeline;
  const StepReport alone = third_step(1, 2, &timeline);
  EXPECT_TRUE(timeline.empty());
  const StepReport uneven = third_step(2, 3, &timeline);
  EXPECT_TRUE(std::isnan(alone.exchange_milliseconds) && std::isnan(alone.straggler));
  // Rank 0 waits for two micro-batches, rank 1 for one, which was filled while rank 1 waited for rank 0 in a collective.
  EXPECT_GT(uneven.straggler, 1.03);
  EXPECT_LE(uneven.straggler, 2);
  EXPECT_GT(uneven.exchange_milliseconds, 0);
  EXPECT_LT(uneven.exchange_milliseconds, uneven.milliseconds);  // it also waits for rows
  ASSERT_EQ(timeline.size(), 3U);
  const StepTimes& last = timeline.back();
  ASSERT_EQ(last.ranks.size(), 2U);
  EXPECT_EQ(last.step, 3);
  EXPECT_EQ(last.slowest(), 0U);
  EXPECT_EQ(last.straggler(), uneven.straggler);
  EXPECT_EQ(last.ranks[0].exchange * 1e3, uneven.exchange_milliseconds);
  // Rank 1 waits for rank 0's second micro-batch.
  EXPECT_GT(last.ranks[1].exchange, last.ranks[0].exchange);
  for (const RankTimes& rank : last.ranks) EXPECT_LE(rank.seconds * 1e3, uneven.milliseconds);
}

TEST(DataParallelStep, ThatWaitsForTheRowsOfARankIsCancelledOnAllAtOnce) {
  const Training training = training_of({.name = "", .keys = {}}, 3);
  const Outcome whole = outcome_of(*training.trainer());
  std::atomic<int> fills = 0;
  std::atomic<bool> is_held = false, is_over = false;
  const auto trainer = trainer_of(training, [&] {
    if (fills.fetch_add(1) != 13) return;
    is_held = true;
    while (!is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  std::thread host([&] {
    while (!is_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // so that the ranks mostly wait
    trainer->cancel();
  });
  const Outcome outcome = outcome_with_a_failure(*trainer, [&](const Error& error) {
    EXPECT_EQ(error.code(), Code::cancelled) << error.message();
    is_over = true;
  });
  host.join();
  EXPECT_EQ(outcome, whole);
}

}  // namespace
}  // namespace st
