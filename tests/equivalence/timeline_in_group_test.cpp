// Times of a step on ranks in separate processes: each reports its own when the next step begins.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "base/json.h"
#include "rank_group.h"
#include "rank_training.h"

namespace st {
namespace {

TEST(TimelineInGroup, IsKnownToAllWhenTheNextStepBegins) {
  const Training training = training_of({.name = "", .keys = {}, .micro_batches = 6}, 1);
  std::vector<std::string> steps(3);
  each_of_group(3, [&](int rank, Communicator& own) {
    const auto joined = in_group(training, own, nullptr, std::make_shared<HookedRows>([rank] {
                                   if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
                                 }));
    Trainer& trainer = *joined;
    EXPECT_TRUE(std::isnan(trainer.step().straggler));
    EXPECT_TRUE(trainer.timeline().empty());
    trainer.step();
    const double straggler = trainer.step().straggler;  // of the second step: the first uses up the rows filled before it began
    EXPECT_GT(straggler, 1.03);
    EXPECT_LE(straggler, 3);
    ASSERT_EQ(trainer.timeline().size(), 2U);
    const StepTimes& second = trainer.timeline().back();
    EXPECT_EQ(second.step, 2);
    EXPECT_EQ(second.straggler(), straggler);
    EXPECT_EQ(second.slowest(), 1U);
    EXPECT_GT(second.ranks[0].exposed, 0);

    const Json told = parse_json(trainer.timeline_json(), "timeline");
    steps[static_cast<size_t>(rank)] = told.find("steps")->dump();
    ASSERT_EQ(told.find("ranks")->list().size(), 1U);
    const Json& here = told.find("ranks")->list()[0];
    EXPECT_EQ(here.find("rank")->whole(), rank);
    EXPECT_EQ(here.find("step")->whole(), 3);
    // It computes between its collectives, and only within its step.
    int64_t at = here.find("began_us")->whole(), computed = 0;
    for (const Json& span : here.find("computed_us")->list()) {
      EXPECT_LE(at, span.list()[0].whole());
      at = span.list()[1].whole();
      computed += at - span.list()[0].whole();
    }
    EXPECT_LE(at, here.find("ended_us")->whole());
    EXPECT_GT(here.find("computed_us")->list().size(), 1U);
    EXPECT_NEAR(static_cast<double>(computed) * 1e-3, here.find("computing")->number(), 0.1);
    EXPECT_GT(here.find("exchanges")->list().size(), 3U);
  });
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_EQ(steps[0], steps[2]);
}

/// A rank knows its own actions; those of all once all have made a digest.
TEST(TimelineInGroup, HasTheActionsOfAllStagesAfterADigest) {
  Training training = training_of({.name = "", .keys = {}, .micro_batches = 4}, 4);
  training.recipe.stages = 2;
  std::vector<PipelineTimes> seen(4);
  each_of_group(4, [&](int rank, Communicator& own) {
    const auto joined = in_group(training, own, nullptr, training.data());
    Trainer& trainer = *joined;
    trainer.step();
    const PipelineTimes before = trainer.pipeline_times();
    ASSERT_EQ(before.lanes.size(), 1U);
    EXPECT_EQ(before.lanes[0].rank, rank);
    trainer.state_digest();
    const PipelineTimes times = seen[static_cast<size_t>(rank)] = trainer.pipeline_times();
    ASSERT_EQ(times.lanes.size(), 4U);
    for (int32_t r = 0; r < 4; ++r) {
      const StageLane& lane = times.lanes[static_cast<size_t>(r)];
      EXPECT_EQ(lane.rank, r);
      EXPECT_EQ(lane.stage, r / 2);
      EXPECT_EQ(lane.data_rank, r % 2);
      ASSERT_EQ(lane.runs.size(), 4U);
      for (const StageRun& run : lane.runs) EXPECT_EQ(run.action.micro_batch % 2, r % 2);
    }
    EXPECT_EQ(times.lanes[static_cast<size_t>(rank)].runs[1].began, before.lanes[0].runs[1].began);
    // The bubble is now that between all ranks.
    const Json told = parse_json(trainer.timeline_json(), "timeline");
    EXPECT_NEAR(told.find("ranks")->list()[0].find("bubble")->number(), times.bubble(times.lanes[static_cast<size_t>(rank)]), 1e-5);
    trainer.step();
    EXPECT_EQ(trainer.pipeline_times().lanes.size(), 1U);
  });
  for (const PipelineTimes& times : seen) EXPECT_EQ(times.bubble(), seen[0].bubble());
}

}  // namespace
}  // namespace st
