// Pipeline stages on ranks that are threads: with every schedule, and with data ranks and ZeRO beside it, all results are bitwise those of
// one rank (traps.md, T17).
#include <gtest/gtest.h>

#include "rank_training.h"
#include "saved_trainer.h"

// Replaces the C library's fsync: no power is lost in this test.
extern "C" int fsync(int) { return 0; }

namespace st {
namespace {

struct Topology {
  int64_t stages = 1, data = 1, zero = 0;
  const char* schedule = "1f1b";
};

std::string text_of(const Topology& t) { return text(t.schedule, " on ", t.stages, " stages and ", t.data, " data ranks, zero ", t.zero); }

Training staged(const Case& c, const Topology& t) {
  Training made = training_of(c, t.stages * t.data);
  made.options.layers = 6;
  made.recipe.stages = t.stages;
  made.recipe.zero = t.zero;
  made.recipe.schedule = t.schedule;
  return made;
}

TEST(PipelineStages, HaveTheBitsOfOneRankWithEverySchedule) {
  const Case plain{.name = "", .keys = {}};
  const Outcome alone = outcome_of(*staged(plain, {}).trainer());
  for (const int64_t stages : {2, 3, 4})
    for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}) {
      const Topology t{.stages = stages, .schedule = schedule};
      EXPECT_EQ(outcome_of(*staged(plain, t).trainer()), alone) << text_of(t);
    }
}

TEST(PipelineStages, BesideDataRanksAndZero) {
  const Case seven{.name = "", .keys = {}, .micro_batches = 7};  // the last round is not whole
  const Outcome alone = outcome_of(*staged(seven, {}).trainer());
  for (const char* schedule : {"1f1b", "interleaved", "zb-h1", "zb-v"})
    for (const int64_t data : {2, 3})
      for (const int64_t zero : {0, 1, 2, 3}) {
        const Topology t{.stages = 2, .data = data, .zero = zero, .schedule = schedule};
        EXPECT_EQ(outcome_of(*staged(seven, t).trainer()), alone) << text_of(t);
      }
}

class StagesByRecipe : public testing::TestWithParam<Case> {};

TEST_P(StagesByRecipe, HaveTheBitsOfOneRank) {
  const Case& c = GetParam();
  const Outcome alone = outcome_of(*staged(c, {}).trainer());
  expect_skips_and_updates(c, alone);
  for (const Topology& t :
       {Topology{.stages = 3}, Topology{.stages = 2, .data = 2, .zero = 1, .schedule = "interleaved"},
        Topology{.stages = 2, .data = 2, .zero = 2, .schedule = "zb-v"}, Topology{.stages = 4, .data = 2, .zero = 3, .schedule = "zb-h1"}})
    EXPECT_EQ(outcome_of(*staged(c, t).trainer()), alone) << text_of(t);
}

INSTANTIATE_TEST_SUITE_P(
    All, StagesByRecipe,
    testing::Values(Case{.name = "bf16", .keys = {{"precision", "\"bf16\""}}}, Case{.name = "fp16", .keys = skipping_fp16()},
                    Case{.name = "dropout", .keys = {{"dropout", "0.2"}}}, Case{.name = "ragged", .keys = {}, .ignored = true},
                    Case{.name = "recompute", .keys = {{"recompute", "\"full\""}}},
                    Case{.name = "muon", .keys = {{"optimizer", "\"muon\""}}},
                    Case{.name = "eight_bits", .keys = {{"precision", "\"bf16\""}, {"optimizer", "\"adamw-8bit\""}}},
                    Case{.name = "average", .keys = {{"ema_decay", "0.9"}}},
                    Case{.name = "groups", .keys = {{"groups", R"([{"pattern": "*.bias", "weight_decay_scale": 0, "clip": 0.1}])"}}},
                    Case{.name = "frozen", .keys = {{"groups", R"([{"pattern": "block.0.*", "frozen": true}])"}}},
                    Case{.name = "frozen_table", .keys = {{"groups", R"([{"pattern": "token_embedding.*", "frozen": true}])"}}},
                    Case{.name = "bf16_gradients", .keys = {{"precision", "\"bf16\""}, {"gradient_dtype", "\"bf16\""}}},
                    Case{.name = "small_buckets", .keys = {{"bucket", "4096"}, {"overlap", "\"off\""}}},
                    Case{.name = "offload", .keys = {{"offload", "\"parameters\""}}},
                    Case{.name = "one_micro_batch", .keys = {}, .micro_batches = 1}),
    [](const auto& instance) { return instance.param.name; });

/// Reduced once a step, the state depends on the number of data ranks, not on the stages.
TEST(PipelineStages, OnceAStepHaveTheBitsOfTheirDataRanks) {
  const Case c{.name = "", .keys = {{"reduce", "\"step\""}}, .micro_batches = 7};
  const Outcome whole = outcome_of(*staged(c, {.data = 3}).trainer());
  for (const int64_t zero : {0, 2, 3}) EXPECT_EQ(outcome_of(*staged(c, {.stages = 3, .data = 3, .zero = zero}).trainer()), whole) << zero;
}

/// The last micro-batch is short, or some data ranks have no rows at all.
TEST(PipelineStages, OnAnyNumberOfRows) {
  const Case c{.name = "", .keys = {}, .micro_batches = 6};
  const Outcome alone = outcome_of_rows(*staged(c, {}).trainer(false), {12, 11, 5, 1, 7});
  for (const Topology& t :
       {Topology{.stages = 2, .schedule = "zb-v"}, Topology{.stages = 3, .data = 2, .zero = 3, .schedule = "interleaved"},
        Topology{.stages = 2, .data = 3, .zero = 1}})
    EXPECT_EQ(outcome_of_rows(*staged(c, t).trainer(false), {12, 11, 5, 1, 7}), alone) << text_of(t);
}

/// T22: saved on one topology, loaded on another.
TEST(PipelineStages, GoOnWhereAnotherTopologyWasSaved) {
  const Case c{.name = "", .keys = {{"precision", "\"bf16\""}, {"ema_decay", "0.9"}}};
  const Outcome whole = outcome_of(*staged(c, {}).trainer());
  const ScratchFolder folder("stages_test");
  const std::vector<Topology> all = {{},
                                     {.stages = 3, .schedule = "zb-h1"},
                                     {.stages = 2, .data = 2, .zero = 2},
                                     {.data = 4, .zero = 3},
                                     {.stages = 2, .data = 3, .zero = 0, .schedule = "zb-v"}};
  for (size_t from = 0; from < all.size(); ++from) {
    const std::string saved = folder / std::to_string(from);
    const auto trainer = staged(c, all[from]).trainer();
    const Outcome before = outcome_of(*trainer, 2);
    save(*trainer, saved);
    for (const Topology& to : all) {
      const auto resumed = staged(c, to).trainer();
      resumed->step();  // its own state gives way
      const ResumeReport report = resume_from(saved, *resumed);
      EXPECT_EQ(report.read, std::ssize(resumed->state_tensors()));
      Outcome after = outcome_of(*resumed, 2);
      after.told.insert(after.told.begin(), before.told.begin(), before.told.end());
      EXPECT_EQ(after, whole) << text_of(all[from]) << ", then " << text_of(to);
    }
  }
}

}  // namespace
}  // namespace st
