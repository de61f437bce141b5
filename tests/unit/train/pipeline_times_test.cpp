// The last step of a pipeline: which stage computed which micro-batch when.
#include "report/pipeline_times.h"

#include <gtest/gtest.h>

#include <cmath>

#include "training.h"

namespace st {
namespace {

Training in_stages(const char* schedule, int64_t micro_batches, int64_t data_ranks = 1) {
  Training made;
  made.options.layers = 4;
  made.recipe = {.batch = 2};
  made.recipe.threads = 1;
  made.recipe.schedule = schedule;
  made.recipe.stages = 2;
  made.recipe.ranks = 2 * data_ranks;
  made.recipe.micro_batches = micro_batches;
  return made;
}

std::vector<StageAction> actions_of(const StageLane& lane) {
  std::vector<StageAction> actions;
  for (const StageRun& run : lane.runs) actions.push_back(run.action);
  return actions;
}

TEST(PipelineTimes, HaveTheActionsOfTheScheduleInItsOrder) {
  for (const char* schedule : {"1f1b", "interleaved", "zb-h1", "zb-v"}) {
    const auto trainer = in_stages(schedule, 5).trainer();
    EXPECT_TRUE(trainer->pipeline_times().lanes.empty());
    double before = 0;  // the end of the last step's actions
    for (int64_t step = 1; step <= 2; ++step) {
      trainer->step();
      const PipelineTimes times = trainer->pipeline_times();
      EXPECT_EQ(times.step, step);
      ASSERT_EQ(times.lanes.size(), 2U);
      for (int32_t stage = 0; stage < 2; ++stage) {
        const StageLane& lane = times.lanes[static_cast<size_t>(stage)];
        EXPECT_EQ(lane.rank, stage);
        EXPECT_EQ(lane.stage, stage);
        EXPECT_EQ(actions_of(lane), schedule_of(trainer->recipe()).actions[static_cast<size_t>(stage)]) << schedule << ", stage " << stage;
        double at = before, waited = 0;
        for (const StageRun& run : lane.runs) {
          EXPECT_LE(at, run.began);
          EXPECT_LE(0, run.waited);
          EXPECT_LE(0, run.exchanged);
          EXPECT_LE(run.waited + run.exchanged, run.ended - run.began + 1e-9);
          at = run.ended;
          waited += run.waited;
        }
        // A wait for a message is exchange, not computing.
        const RankTimes& whole = trainer->timeline().back().ranks[static_cast<size_t>(stage)];
        EXPECT_GE(whole.exposed + 1e-9, waited);
        EXPECT_GE(whole.exchange + 1e-9, waited);
      }
      before = times.ended();
      // The last stage cannot begin before the first one has sent.
      EXPECT_GT(times.lanes[1].runs.front().waited, 0);
    }
  }
}

TEST(PipelineTimes, CountTheMicroBatchesOfAllDataRanks) {
  const auto trainer = in_stages("1f1b", 5, 2).trainer();
  trainer->step();
  const PipelineTimes times = trainer->pipeline_times();
  ASSERT_EQ(times.lanes.size(), 4U);
  for (const StageLane& lane : times.lanes) {
    std::vector<int32_t> forward;
    double exchanged = 0;
    for (const StageRun& run : lane.runs) {
      if (run.action.phase == Phase::forward) forward.push_back(run.action.micro_batch);
      exchanged += run.exchanged;
    }
    EXPECT_GT(exchanged, 0) << "gradients of each micro-batch";
    EXPECT_EQ(lane.stage, lane.rank / 2);
    EXPECT_EQ(lane.data_rank, lane.rank % 2);
    EXPECT_EQ(forward, lane.data_rank == 0 ? (std::vector<int32_t>{0, 2, 4}) : (std::vector<int32_t>{1, 3}));
  }
}

/// Its last micro-batch has a plan of its own.
TEST(PipelineTimes, HaveTheMicroBatchesOfAShortStep) {
  const Training training = in_stages("1f1b", 4);
  const auto trainer = training.trainer(false);
  const int64_t context = training.options.context, rows = 5;  // of 8
  const std::vector<int32_t> tokens(static_cast<size_t>(rows * context), 3);
  trainer->step(std::vector{plain_view("tokens", DType::i32, {rows, context}, tokens.data()),
                            plain_view("targets", DType::i32, {rows, context}, tokens.data())});
  const PipelineTimes times = trainer->pipeline_times();
  ASSERT_EQ(times.lanes.size(), 2U);
  using Actions = std::vector<StageAction>;
  constexpr Phase F = Phase::forward, B = Phase::backward;
  EXPECT_EQ(actions_of(times.lanes[0]), (Actions{{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}, {F, 0, 2}, {B, 0, 2}}));
  EXPECT_EQ(actions_of(times.lanes[1]), (Actions{{F, 0, 0}, {B, 0, 0}, {F, 0, 1}, {B, 0, 1}, {F, 0, 2}, {B, 0, 2}}));
}

TEST(PipelineTimes, AreEmptyWithOneStage) {
  Training alone = in_stages("1f1b", 2);
  alone.recipe.stages = alone.recipe.ranks = 1;
  const auto trainer = alone.trainer();
  trainer->step();
  EXPECT_TRUE(trainer->pipeline_times().lanes.empty());
  EXPECT_TRUE(std::isnan(trainer->pipeline_times().bubble()));
}

TEST(PipelineTimes, CountAWaitAsBubble) {
  // From 1 s, when rank 0 begins, to 9 s. Rank 0 computes for 3 s and 1 s, rank 1 for 2 s: its wait for the first message is not computing.
  PipelineTimes times;
  times.lanes = {{0, 0, 0, 0, {{.began = 1, .ended = 4, .waited = 0}, {.began = 4, .ended = 9, .waited = 3, .exchanged = 1}}},
                 {1, 1, 0, 0, {{.began = 0.5, .ended = 6, .waited = 3.5}}}};
  EXPECT_DOUBLE_EQ(times.began(), 1);
  EXPECT_DOUBLE_EQ(times.ended(), 9);
  EXPECT_DOUBLE_EQ(times.bubble(times.lanes[0]), 4.0 / 8);
  EXPECT_DOUBLE_EQ(times.bubble(times.lanes[1]), 6.0 / 8);
  EXPECT_DOUBLE_EQ(times.bubble(), 5.0 / 8);
}

}  // namespace
}  // namespace st
