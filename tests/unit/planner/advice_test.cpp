#include "planner/advice.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/text.h"
#include "planned_runs.h"
#include "planner/planned_stages.h"
#include "recipe/can_offload.h"

namespace st {
namespace {

std::vector<Fix> fixes_of(const PlannedRun& run, Workers& workers) {
  BegunPlans begun;
  const RankPlan plan = plan_of_rank(run, 0, &begun);
  return fixes_for(run, plan, 0, step_seconds(run, plan, 0, begun, workers), workers);
}

/// Plans that do not fit; each has a fix among the recipe's keys.
TEST(Advice, EveryWrongPlanHasAFixThatFitsWhenItIsApplied) {
  const GptOptions medium{.layers = 6, .width = 4096, .heads = 32, .context = 2048, .vocabulary = 51200};  // 1.4 B
  const struct {
    const GptOptions& model;
    const char* recipe;
    const char* machine;
  } kWrong[] = {{k10B, R"({"ranks":8,"batch":4,"precision":"fp16"})", "a100-80g"},
                {k10B, R"({"ranks":8,"batch":1,"precision":"bf16","zero":1})", "a100-40g"},
                {k10B, R"({"ranks":16,"batch":16,"precision":"bf16","zero":3})", "h100-sxm"},
                {k10B, R"({"ranks":4,"batch":1,"precision":"bf16","stages":2,"accumulate":4})", "a100-80g"},
                {k10B, R"({"ranks":2,"batch":1,"precision":"bf16"})", "h200"},
                {medium, R"({"batch":16,"precision":"bf16"})", "a100-40g"},
                {medium, R"({"batch":8})", "a100-40g"},
                {medium, R"({"ranks":4,"batch":8,"precision":"fp16","zero":2})", "v100-32g"},
                {medium, R"({"ranks":8,"batch":64,"precision":"bf16","zero":3,"recompute":"attention"})", "a100-80g"},
                {medium, R"({"ranks":2,"tensor":2,"batch":32,"precision":"bf16"})", "a100-40g"}};
  Workers workers(2);
  for (const auto& [model, json, machine] : kWrong) {
    SCOPED_TRACE(text(json, " on ", machine));
    PlannedRun run = run_of(model, json, machine);
    EXPECT_GT(plan_of_rank(run, 0).numbers.memory.device_total(), run.device_memory_of_rank());
    const std::vector<Fix> fixes = fixes_of(run, workers);
    ASSERT_FALSE(fixes.empty());
    ASSERT_TRUE(fixes.front().fits) << fixes.front().text();
    for (const Fix& fix : fixes) {
      Recipe with = run.recipe;
      for (const KeyChange& change : fix.changes) with.set(change.key, change.value);
      EXPECT_TRUE(can_offload(with, true)) << "a trainer refuses " << fix.text();
      EXPECT_FALSE(fix.is_nearest) << "one fits: " << fix.text();
      PlannedRun changed = run;
      changed.recipe = with;
      EXPECT_EQ(plan_of_rank(changed, 0).numbers.memory.device_total(), fix.device_total) << fix.text();
    }
    for (const KeyChange& change : fixes.front().changes) run.recipe.set(change.key, change.value);
    BegunPlans begun;
    const RankPlan mended = plan_of_rank(run, 0, &begun);
    EXPECT_LE(mended.numbers.memory.device_total(), run.device_memory_of_rank());
    EXPECT_EQ(mended.numbers.memory.device_total(), fixes.front().device_total);
    EXPECT_EQ(step_seconds(run, mended, 0, begun, workers), fixes.front().step_seconds);
    EXPECT_EQ(run.recipe.batch * run.recipe.step_micro_batches(), recipe(json).batch * recipe(json).step_micro_batches())
        << "rows of a step";
  }
}

TEST(Advice, SeveralChangesAreFirstIfTheOneThatFitsAloneIsSlow) {
  const GptOptions wide{.layers = 12, .width = 8192, .heads = 64, .context = 1024, .vocabulary = 44032};
  const PlannedRun run = run_of(wide, R"({"ranks":8,"batch":15,"precision":"fp16","optimizer":"adam"})", "a100-80g");
  Workers workers(1);
  const std::vector<Fix> fixes = fixes_of(run, workers);
  ASSERT_GE(fixes.size(), 2U);
  const auto of = [](const Fix& fix, const std::string& key) { return std::ranges::count(fix.changes, key, &KeyChange::key) > 0; };
  const auto alone = std::ranges::find_if(fixes, [&](const Fix& fix) { return fix.fits && fix.changes.size() == 1; });
  ASSERT_NE(alone, fixes.end());
  EXPECT_TRUE(of(*alone, "offload")) << alone->text();
  EXPECT_GT(alone->slower, 1);
  EXPECT_FALSE(of(fixes.front(), "offload")) << fixes.front().text();
  EXPECT_TRUE(fixes.front().fits);
  EXPECT_LT(fixes.front().slower, 0.2);
}

TEST(Advice, SaysWhatIsStillMissingIfNothingFits) {
  PlannedRun run = run_of(kSmall, R"({"ranks":2,"batch":4,"precision":"bf16"})", "v100-32g");
  run.machine.device_memory = run.machine.profile.reserved + 1000;  // bytes
  Workers workers(1);
  const std::vector<Fix> fixes = fixes_of(run, workers);
  ASSERT_GE(fixes.size(), 2U);
  const Fix& nearest = fixes.front();
  EXPECT_TRUE(nearest.is_nearest);
  EXPECT_GT(nearest.changes.size(), 1U) << nearest.text();
  for (const Fix& fix : fixes) {
    EXPECT_FALSE(fix.fits) << fix.text();
    EXPECT_EQ(fix.missing, fix.device_total - run.device_memory_of_rank());
    EXPECT_TRUE(fix.changes_results || fix.missing >= nearest.missing) << fix.text();
    EXPECT_EQ(fix.is_nearest, &fix == &nearest);
    EXPECT_EQ(fix.text().find("does not fit but comes nearest, ") != std::string::npos, fix.is_nearest) << fix.text();
  }
  Fix by{.changes = {{"zero", "1", "0"}}, .saved = 2'000'000'000, .is_nearest = true};
  const std::pair<int64_t, const char*> kMissing[] = {{1'234'567'890, "1.2 GB"}, {56'700'000, "56.7 MB"}, {17, "17 B"}};
  for (const auto& [missing, words] : kMissing) {
    by.missing = missing;
    EXPECT_EQ(by.text(), text("zero 0 -> 1: -2.0 GB, +0 % time; does not fit but comes nearest, ", words, " too much"));
  }
}

}  // namespace
}  // namespace st
