#include "planner/search.h"

#include <gtest/gtest.h>

#include "planned_runs.h"
#include "recipe/can_offload.h"

namespace st {
namespace {

TEST(Search, FindsWhatFitsAndKeepsTheRowsOfAStep) {
  const GptOptions medium{.layers = 12, .width = 2048, .heads = 16, .context = 1024, .vocabulary = 8192};
  const PlannedRun run = run_of(medium, R"({"ranks":4,"batch":16,"precision":"bf16"})", "v100-32g");
  Workers workers(2);
  const SearchResult found = search(run, workers);
  double before = 0;
  ASSERT_FALSE(found.best.empty());
  for (const Candidate& of : found.best) {
    EXPECT_TRUE(of.fits);
    EXPECT_GE(of.step_seconds, before);
    EXPECT_EQ(of.recipe.batch * of.recipe.step_micro_batches(), 64);
    before = of.step_seconds;
  }
  Workers one(1);
  EXPECT_EQ(search(run, one).text(run), found.text(run)) << "whatever the number of threads";
  PlannedRun best = run;
  best.recipe = found.best.front().recipe;
  EXPECT_EQ(plan_of_rank(best, 0).step_seconds(best.recipe), found.best.front().step_seconds);

  // Offloaded, with recompute and a micro-batch of one row it fits where nothing else does.
  const PlannedRun wide = run_of(k10B, R"({"ranks":2,"batch":8,"precision":"bf16"})", "v100-32g");
  const SearchResult offloaded = search(wide, workers);
  ASSERT_FALSE(offloaded.best.empty());
  EXPECT_TRUE(offloaded.best.front().fits) << offloaded.text(wide);
  EXPECT_EQ(offloaded.best.front().recipe.offload, "gradients");
  PlannedRun odd = run_of(k10B, R"({"ranks":2,"batch":15,"precision":"bf16"})", "v100-32g");
  odd.machine.device_memory = 28'000'000'000;
  EXPECT_TRUE(search(odd, workers).best.front().fits) << "smaller odd micro-batches fit";

  PlannedRun hopeless = run_of(k10B, R"({"ranks":1,"batch":1,"precision":"bf16"})", "v100-32g");
  hopeless.machine.device_memory = int64_t{4} << 30;
  const SearchResult nearest = search(hopeless, workers);
  ASSERT_FALSE(nearest.best.empty());
  EXPECT_FALSE(nearest.best.front().fits);
  for (const Candidate& of : nearest.best) EXPECT_TRUE(can_offload(of.recipe, true)) << of.text();
}

}  // namespace
}  // namespace st
