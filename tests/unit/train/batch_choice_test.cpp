#include "tuning/batch_choice.h"

#include "refusal.h"
#include "training.h"

namespace st {
namespace {

std::shared_ptr<Model> model_within(int64_t memory_limit) {
  return std::make_shared<Model>(context_within(memory_limit), build_gpt(odd_gpt()), 1);
}

Recipe automatic(int64_t global_batch) {
  Recipe recipe;
  recipe.merge(R"({"batch": "auto", "device": "reference"})");
  recipe.global_batch = global_batch;
  return recipe;
}

testing::AssertionResult batch_refuses(const Model& model, const Recipe& recipe, std::initializer_list<std::string_view> words,
                                       Code code = Code::invalid_argument) {
  return refuses(code, words, [&] { with_batch_decided(model, recipe); });
}

TEST(BatchChoice, TakesTheWholeStepWhereItFits) {
  const Recipe decided = with_batch_decided(*model_within(0), automatic(12));
  EXPECT_EQ(decided.batch, 12);
  EXPECT_EQ(decided.accumulate, 1);
}

// The chosen batch trains within the limit; the trainer itself refuses the next larger divisor.
TEST(BatchChoice, TakesTheLargestDivisorThatFits) {
  int64_t before = 0;
  for (const int64_t kib : {110, 140, 200, 300, 500, 900}) {
    const auto model = model_within(kib << 10);
    const Recipe decided = with_batch_decided(*model, automatic(24));
    EXPECT_EQ(decided.batch * decided.accumulate, 24);
    EXPECT_GE(decided.batch, before) << kib << " KiB";
    before = decided.batch;
    const auto rows = std::make_shared<Sequences>(50, 7, 17);
    Trainer trainer(model, decided, rows);
    trainer.step();
    trainer.evaluate(std::make_shared<Sequences>(9, 7, 17));
  }
  EXPECT_GT(before, 1);
  const Recipe least = with_batch_decided(*model_within(110 << 10), automatic(24));
  EXPECT_LT(least.batch, before) << "the limits here choose nothing";
  Recipe larger = least;
  for (larger.batch = least.batch + 1; 24 % larger.batch != 0;) ++larger.batch;
  larger.accumulate = 24 / larger.batch;
  const auto model = model_within(110 << 10);
  EXPECT_THROW(
      {
        Trainer trainer(model, larger, nullptr);
        trainer.evaluate(std::make_shared<Sequences>(24, 7, 17));
      },
      Error);
}

TEST(BatchChoice, SaysWhatOneRowNeedsWhereNothingFits) {
  EXPECT_TRUE(
      batch_refuses(*model_within(40 << 10), automatic(24), {"not even micro-batches of 1 row fit", "is available"}, Code::out_of_memory));
}

TEST(BatchChoice, NeedsAGlobalBatchAndNoAccumulation) {
  const auto model = model_within(0);
  EXPECT_TRUE(batch_refuses(*model, automatic(0), {"needs global_batch"}));
  Recipe recipe = automatic(12);
  recipe.accumulate = 3;
  EXPECT_TRUE(batch_refuses(*model, recipe, {"accumulate follows from it, got 3"}));
}

TEST(BatchChoice, AccumulateFollowsAGlobalBatchAndContradictionsShowTheNumbers) {
  const auto model = model_within(0);
  Recipe recipe;
  recipe.merge(R"({"batch": 3, "global_batch": 12})");
  EXPECT_EQ(with_batch_decided(*model, recipe).accumulate, 4);
  recipe.set("accumulate", "2");
  EXPECT_TRUE(batch_refuses(*model, recipe, {"batch 3 x 2 micro-batches on 1 rank makes 6 sequences per step, but global_batch is 12"}));
  Recipe odd;
  odd.merge(R"({"batch": 5, "global_batch": 12})");
  EXPECT_TRUE(batch_refuses(*model, odd, {"give a multiple of 5"}));
}

TEST(BatchChoice, OnlyTheBatchMayBeAuto) {
  Recipe recipe;
  EXPECT_THROW(recipe.merge(R"({"accumulate": "auto"})"), Error);
  EXPECT_THROW(recipe.merge(R"({"batch": "largest"})"), Error);
  EXPECT_THROW(recipe.set("batch", "0"), Error);
  recipe.set("batch", "\"auto\"");
  EXPECT_EQ(recipe.get("batch"), "\"auto\"");
  Recipe copy;
  copy.merge(recipe.json());
  EXPECT_EQ(copy.json(), recipe.json());
}

}  // namespace
}  // namespace st
