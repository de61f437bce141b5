#include "planner/pipeline_lane.h"

#include <gtest/gtest.h>

#include "models/gpt.h"
#include "planner/blueprint.h"

namespace st {
namespace {

/// A vocabulary that makes the last stage long, and a slow link between any two ranks.
PlannedRun uneven_run(std::string_view json) {
  PlannedRun run{.model = build_gpt({.layers = 8, .width = 256, .heads = 4, .context = 256, .vocabulary = 8192}),
                 .recipe = {},
                 .machine = machine_named("v100-16g")};
  run.recipe.merge(json);
  run.machine.ranks_per_node = 1;
  run.machine.between_nodes = link_named("10g");
  return run;
}

TEST(PipelineLane, HasTheStepOfAllRanks) {
  Workers workers(2);
  for (const char* json : {R"({"ranks":4,"stages":4,"batch":4,"accumulate":6,"precision":"fp16"})",
                           R"({"ranks":4,"stages":2,"batch":4,"accumulate":4,"precision":"fp16","schedule":"interleaved"})",
                           R"({"ranks":4,"stages":4,"batch":4,"accumulate":8,"precision":"fp16","schedule":"zb-v"})"}) {
    SCOPED_TRACE(json);
    const PlannedRun run = uneven_run(json);
    const double of_all = RunPlan(run).simulate().seconds();
    for (const int32_t rank : {0, 3}) {
      const Blueprint plan(run, {.rank = rank}, workers);
      EXPECT_NEAR(plan.shares().all(), of_all, 5e-3 * of_all) << "rank " << rank;  // less, or more, by what ranks of other lanes wait
      EXPECT_GT(plan.shares().exchange[static_cast<size_t>(MeshAxis::stage)], 0);
    }
    EXPECT_LT(plan_of_rank(run, 0).step_seconds(run.recipe), 0.95 * of_all) << "the first stage alone does not know it";
  }
}

TEST(PipelineLane, IsTheRanksOwnWhereOtherLanesHaveMoreMicroBatches) {
  Workers workers(2);
  const PlannedRun run = uneven_run(R"({"ranks":4,"stages":2,"zero":1,"batch":2,"micro_batches":3,"precision":"fp16"})");
  for (const int32_t rank : {0, 1}) {
    const StepShares simulated = Blueprint(run, {.rank = rank, .simulates = true}, workers).shares();
    const StepShares own = Blueprint(run, {.rank = rank}, workers).shares();
    EXPECT_EQ(simulated.all(), own.all()) << "rank " << rank;
    EXPECT_EQ(simulated.computing, own.computing) << "rank " << rank;
  }
}

TEST(PipelineLane, IsWhatASearchTakesForAPipeline) {
  Workers workers(2);
  const PlannedRun run = uneven_run(R"({"ranks":4,"batch":12,"accumulate":2,"precision":"fp16"})");
  const SearchResult found = search(run, workers);
  ASSERT_FALSE(found.best.empty());
  const auto simulated = [&](const Candidate& of) {
    PlannedRun other = run;
    other.recipe = of.recipe;
    return RunPlan(other).simulate().seconds();
  };
  const double first = simulated(found.best.front());
  bool has_pipeline = false, has_asked = false;
  for (const Candidate& of : found.best) {
    has_pipeline = has_pipeline || of.recipe.stages > 1;
    has_asked = has_asked || of.changes.empty();
    EXPECT_GE(simulated(of), 0.999 * first) << of.text();
    if (of.knows_all_stages) EXPECT_NEAR(of.step_seconds, simulated(of), 0.02 * first) << of.text();
  }
  EXPECT_TRUE(has_pipeline);
  EXPECT_TRUE(has_asked);
}

}  // namespace
}  // namespace st
