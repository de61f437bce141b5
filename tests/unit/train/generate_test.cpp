#include "train/generate.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/build.h"
#include "training.h"

namespace st {
namespace {

/// A model that has learned "one more, modulo 17".
const std::shared_ptr<Model>& counting_model() {
  static const std::shared_ptr<Model> model = [] {
    const auto trainer_of = Training{.device = "cpu", .recipe = {.batch = 8, .lr = 1e-2, .weight_decay = 0}};
    auto made = trainer_of.model();
    Recipe recipe = trainer_of.recipe;
    recipe.device = "cpu";
    Trainer trainer(made, recipe, trainer_of.data());
    losses_of(trainer, 200);
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
  const auto refusal = [&](const std::vector<int32_t>& prompt, const GenerateOptions& options) {
    try {
      generator.run(prompt, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.message();
    }
    return std::string();
  };
  EXPECT_NE(refusal({}, {}).find("empty"), std::string::npos);
  EXPECT_NE(refusal({3, 17}, {}).find("17"), std::string::npos);
  EXPECT_NE(refusal({-1}, {}).find("-1"), std::string::npos);
  EXPECT_NE(refusal({1}, {.temperature = -0.5}).find("-0.5"), std::string::npos);
  EXPECT_NE(refusal({1}, {.top_k = -2}).find("-2"), std::string::npos);
}

TEST(Generate, RefusesAModelThatNeedsMoreThanTokens) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(program, 0);
  const Value tokens = b.input("tokens", DType::i32, {kBatch, 4}), style = b.input("style", DType::f32, {kBatch, 4, 5});
  const Value rows = b(Op::embedding, {b.parameter("w", {5, 5}, {.kind = Init::normal, .values = {}}), tokens});
  program.outputs.push_back({"logits", b.add(rows, style)});
  const auto model = std::make_shared<Model>(Training{}.context(), program, 1);
  try {
    const Generator generator(model);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("\"style\""), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace st
