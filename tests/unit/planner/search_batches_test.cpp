#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "models/gpt.h"
#include "plan/pipeline_schedule.h"
#include "planner/split_search.h"

namespace st {
namespace {

PlannedRun deep_run(std::string_view json, int64_t layers = 4) {
  PlannedRun run{.model = build_gpt({.layers = layers, .width = 1024, .heads = 16, .context = 512, .vocabulary = 1024}),
                 .recipe = {},
                 .machine = machine_named("v100-16g")};
  run.recipe.merge(json);
  return run;
}

Recipe with(Recipe recipe, int64_t rows, int64_t batch) {  // rows: of a data rank in a step
  recipe.batch = batch;
  recipe.accumulate = rows / batch;
  return recipe;
}

/// With each micro-batch that divides a data rank's rows and each policy.
std::vector<Candidate> all_candidates(const PlannedRun& run, Recipe recipe, int64_t rows) {
  std::vector<Candidate> all;
  for (int64_t batch = rows; batch >= 1; --batch)
    for (const char* policy : {"none", "attention", "blocks"}) {
      if (rows % batch != 0) continue;
      recipe.recompute = policy;
      std::optional<Candidate> made = candidate_of(run, with(recipe, rows, batch));
      if (made) all.push_back(std::move(*made));
    }
  return all;
}

const Candidate* fastest(const std::vector<Candidate>& all) {
  const Candidate* best = nullptr;
  for (const Candidate& of : all)
    if (of.fits && (best == nullptr || of.step_seconds < best->step_seconds)) best = &of;
  return best;
}

/// Rows 15: 5 fit, and powers of two would give 1. Rows 36: 12 fit, which is between 18 and 9, the sizes tried first.
TEST(SearchBatches, FindsTheFastestOfAllThatDivideTheRows) {
  for (const auto& [rows, fits] : {std::pair{15, 5}, {36, 12}}) {
    PlannedRun run = deep_run(R"({"ranks":2,"precision":"bf16","zero":3})");
    run.recipe = with(run.recipe, rows, rows);
    PlannedRun one = run;
    const std::optional<Candidate> largest = candidate_of(one, with(run.recipe, rows, fits));
    ASSERT_TRUE(largest);
    run.machine.device_memory = largest->device_total;
    const SplitResult found = search_split(run, {.stages = 1, .tensor = 1}, {});
    ASSERT_FALSE(found.best.empty());
    const std::vector<Candidate> all = all_candidates(run, run.recipe, rows);
    const Candidate* const best = fastest(all);
    ASSERT_NE(best, nullptr);
    EXPECT_EQ(best->recipe.batch, fits) << best->text();
    EXPECT_EQ(found.best.front().text(), best->text());
    EXPECT_LT(found.planned, std::ssize(all)) << "it leaves out what cannot fit";
  }
}

TEST(SearchBatches, OfAPipelineAreAsSmallAsItsBubbleAsksFor) {
  const PlannedRun run = deep_run(R"({"ranks":4,"batch":24,"stages":4,"precision":"bf16","schedule":"gpipe"})", 8);
  const SplitResult found = search_split(run, {.stages = 4, .tensor = 1}, {});
  ASSERT_EQ(found.best.size(), 1U);
  const std::vector<Candidate> all = all_candidates(run, run.recipe, 24);
  EXPECT_LE(found.best.front().step_seconds, fastest(all)->step_seconds) << found.best.front().text();
  EXPECT_EQ(found.best.front().recipe.batch, fastest(all)->recipe.batch);
}

/// The bound holds for every schedule, also where a stage's forward and backward take other times than those of the formulas.
TEST(SearchBatches, NoScheduleHasASmallerBubbleThanTheBound) {
  Recipe recipe;
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"})
    for (const int32_t stages : {2, 4, 8})
      for (const int32_t micro_batches : {8, 16, 24})
        for (const auto& [forward, input, weight] : {std::tuple{1.0, 1.0, 1.0}, {1.0, 2.0, 0.5}, {2.0, 1.0, 1.0}, {0.5, 1.0, 2.0}}) {
          recipe.schedule = schedule;
          const PipelineSchedule made = make_schedule(schedule, stages, usual_chunks(schedule), micro_batches);
          const double busy = micro_batches * (forward + input + weight);
          const PassSeconds of_step{.forward = micro_batches * forward, .backward = micro_batches * (input + weight)};
          const double least = least_bubble(recipe, stages, of_step, micro_batches);
          EXPECT_LE(least, makespan(made, {forward, input, weight}) - busy + 1e-9) << schedule << ", " << stages << " stages";
          EXPECT_GT(least, 0);
        }
}

/// 1F1B leaves 8 stages with 12 micro-batches 7 / 19 of the step without work, far more than what another split has reached; a schedule
/// with a smaller bubble is faster than that.
TEST(SearchBatches, ASplitThatAnotherScheduleMakesTheFastestIsNotLeftOut) {
  const PlannedRun run = deep_run(R"({"ranks":8,"batch":3,"accumulate":4,"stages":8,"precision":"bf16"})", 16);
  const RankSplit split{.stages = 8, .tensor = 1};
  PlannedRun asked = run;
  asked.recipe = with(run.recipe, 12, 1);
  const std::optional<Candidate> plain = candidate_of(asked, asked.recipe);
  asked.recipe.schedule = "zb-h1";
  const std::optional<Candidate> filled = candidate_of(asked, asked.recipe);
  ASSERT_TRUE(plain && filled);
  ASSERT_GT(plain->step_seconds, 1.2 * filled->step_seconds);
  const SearchBounds bounds{.fastest = filled->step_seconds, .computing = plain->shares.computing, .passes = plain->passes};
  const SplitResult found = search_split(run, split, bounds);
  ASSERT_EQ(found.best.size(), 1U);
  EXPECT_LE(found.best.front().step_seconds, filled->step_seconds) << found.best.front().text();
  SearchBounds reached = bounds;
  reached.fastest = bounds.computing / 1.2;
  EXPECT_TRUE(search_split(run, split, reached).best.empty()) << "it cannot be faster";
}

}  // namespace
}  // namespace st
