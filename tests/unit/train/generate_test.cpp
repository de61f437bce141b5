#include "train/generate.h"

#include "ir/build.h"
#include "refusal.h"
#include "training.h"

namespace st {
namespace {

/// A model that has learned "one more, modulo 17".
const std::shared_ptr<Model>& counting_model() {
  static const std::shared_ptr<Model> model = [] {
    const Training training{.device = "cpu", .recipe = {.batch = 8, .lr = 1e-2, .weight_decay = 0}};
    const auto made = training.model();
    losses_of(*training.trainer_of(made, training.data()), 200);
    return made;
  }();
  return model;
}

TEST(Generate, AtTemperatureZeroContinuesALearnedPattern) {
  Generator generator(counting_model());
  const std::vector<int32_t> prompt = {3, 4, 5};
  const auto text = generator.run(prompt, {.tokens = 30, .temperature = 0});
  ASSERT_EQ(text.size(), 30U);  // far past the context of 7
  for (size_t i = 0; i < text.size(); ++i) EXPECT_EQ(text[i], static_cast<int32_t>((6 + i) % 17));
}

TEST(Generate, TheSameSeedGivesTheSameTextAndAnotherAnother) {
  Generator one(counting_model()), other(counting_model());
  const std::vector<int32_t> prompt = {3};
  const GenerateOptions hot{.tokens = 40, .temperature = 5, .top_k = 0, .seed = 1};
  const auto text = one.run(prompt, hot);
  EXPECT_EQ(text, one.run(prompt, hot));
  EXPECT_EQ(text, other.run(prompt, hot));
  GenerateOptions reseeded = hot;
  reseeded.seed = 2;
  EXPECT_NE(text, one.run(prompt, reseeded));
}

TEST(Generate, TopOneIsTheLikeliestAtAnyTemperature) {
  Generator generator(counting_model());
  const std::vector<int32_t> prompt = {9, 10};
  EXPECT_EQ(generator.run(prompt, {.tokens = 10, .temperature = 50, .top_k = 1}), generator.run(prompt, {.tokens = 10, .temperature = 0}));
}

TEST(Generate, StopsWhenTheCallerSaysSo) {
  Generator generator(counting_model());
  const std::vector<int32_t> prompt = {1};
  std::vector<int32_t> seen;
  const auto text = generator.run(prompt, {.tokens = 100, .temperature = 0}, [&](int32_t token) {
    seen.push_back(token);
    return seen.size() < 4;
  });
  EXPECT_EQ(text.size(), 4U);
  EXPECT_EQ(seen, text);
}

TEST(Generate, RefusesWhatItCannotContinue) {
  Generator generator(counting_model());
  const auto refused = [&](const std::vector<int32_t>& prompt, const GenerateOptions& options, std::string_view word) {
    return refuses({word}, [&] { generator.run(prompt, options); });
  };
  EXPECT_TRUE(refused({}, {}, "empty"));
  EXPECT_TRUE(refused({3, 17}, {}, "17"));
  EXPECT_TRUE(refused({-1}, {}, "-1"));
  EXPECT_TRUE(refused({1}, {.temperature = -0.5}, "-0.5"));
  EXPECT_TRUE(refused({1}, {.top_k = -2}, "-2"));
}

TEST(Generate, RefusesAModelThatNeedsMoreThanTokens) {
  Program program;
  program.sections.emplace_back();
  Builder b(program, 0);
  const Value tokens = b.input("tokens", DType::i32, {kBatch, 4}), style = b.input("style", DType::f32, {kBatch, 4, 5});
  const Value rows = b(Op::embedding, {b.parameter("w", {5, 5}, {.kind = Init::normal, .values = {}}), tokens});
  program.outputs.push_back({"logits", b.add(rows, style)});
  const auto model = std::make_shared<Model>(Training{}.context(), program, 1);
  EXPECT_TRUE(says(error_of([&] { const Generator generator(model); }), "\"style\""));
}

}  // namespace
}  // namespace st
