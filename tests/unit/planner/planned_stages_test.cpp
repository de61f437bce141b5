#include "planner/planned_stages.h"

#include <gtest/gtest.h>

#include "planned_runs.h"
#include "planner/blueprint.h"
#include "planner/run_plan.h"
#include "refusal.h"

namespace st {
namespace {

/// Logits are on the last stage, which is then the fullest.
PlannedRun run_with_a_full_last_stage() {
  return run_of({.layers = 4, .width = 64, .heads = 4, .context = 64, .vocabulary = 8192},
                R"({"ranks":4,"stages":2,"zero":1,"batch":8,"accumulate":2,"stage_starts":"block.3"})");
}

TEST(PlannedStage, IsThatOfEachStagesPlanAndInASimulationThatOfItsFullestRank) {
  const PlannedRun run = run_with_a_full_last_stage();
  Workers workers(2);
  BegunPlans begun;
  const RankPlan of_rank_1 = plan_of_rank(run, 1, &begun);
  const std::vector<PlannedStage> stages = planned_stages(run, of_rank_1, 1, begun, workers);
  ASSERT_EQ(stages.size(), 2U);
  for (const PlannedStage& of : stages) {
    const RankPlan own = plan_of_rank(run, of.rank);
    EXPECT_EQ(own.at.stage, of.stage);
    EXPECT_EQ(own.at.data, 1) << "as rank 1";
    EXPECT_EQ(own.numbers.memory.device, of.memory.device);
  }
  EXPECT_EQ(fullest(stages).stage, 1);
  const std::vector<PlannedStage> all = planned_stages(RunPlan(run), {});
  ASSERT_EQ(all.size(), 2U);
  for (int32_t rank = 0; rank < 4; ++rank) {
    const RankPlan own = plan_of_rank(run, rank);
    EXPECT_GE(all[static_cast<size_t>(own.at.stage)].memory.device_total(), own.numbers.memory.device_total());
  }
}

TEST(PlannedStage, ThatOfAnotherStageRefusesThePlanAndIsWhatChangesAreFor) {
  PlannedRun run = run_with_a_full_last_stage();
  Workers workers(1);
  const auto on_first = [&] { return Blueprint(run, {}, workers); };
  EXPECT_TRUE(on_first().fits());
  run.machine.device_memory = fullest(on_first().stages()).memory.device_total() - 1;
  const Blueprint refused = on_first();
  EXPECT_TRUE(refused.fits(refused.of_rank().numbers.memory));
  EXPECT_FALSE(refused.fits());
  EXPECT_TRUE(says(refused.text(), {": fits\n  fullest", "stage 1 of 2, rank 2: does not fit, 1 B too much",
                                    "changes and their prices on rank 2\n  fits"}));
  EXPECT_TRUE(says(refused.json(), {R"("fits":false,"wire_bytes")", R"({"stage":0,"rank":0,)", R"({"stage":1,"rank":2,)"}));
}

}  // namespace
}  // namespace st
