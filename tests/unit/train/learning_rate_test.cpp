// The learning rate of a trainer's steps: the recipe's schedule at the number of successful steps, or the host's function.

#include <cmath>
#include <limits>
#include <stdexcept>

#include "recipe/schedule_choice.h"
#include "refusal.h"
#include "training.h"

namespace st {
namespace {

Training with(const char* json) {
  Training training{.recipe = {.batch = 3}};
  training.recipe.merge(json);
  return training;
}

// T14 at one rank.
TEST(LearningRate, EqualsItsTableAfterSkippedSteps) {
  const Training training = with(R"({"lr_schedule": "cosine", "lr": 0.01, "warmup": 3, "lr_steps": 12, "lr_min": 0.001, "lr_cycles": 2})");
  const LrSchedule table = schedule_choice(training.recipe);
  const auto trainer = training.trainer();
  int64_t successful = 0;
  for (int64_t attempt = 1; attempt <= 18; ++attempt) {
    std::optional<Overflow> overflow;
    if (attempt % 7 == 2 || attempt % 7 == 3) overflow.emplace(trainer->model());
    const StepReport report = trainer->step();
    ASSERT_EQ(report.skipped, overflow.has_value()) << attempt;
    EXPECT_EQ(report.lr, table.at(successful)) << attempt;
    if (!report.skipped) ++successful;
  }
  EXPECT_EQ(successful, 12);
}

TEST(LearningRate, IsChangedKeyByKeyFromTheNextStepOn) {
  const auto trainer = with(R"({"lr": 0.5, "warmup": 0})").trainer();
  EXPECT_EQ(trainer->step().lr, 0.5);
  trainer->set("lr_steps", "5");
  EXPECT_EQ(trainer->step().lr, 0.5) << "constant has no length";
  trainer->set("lr_schedule", "\"linear\"");
  EXPECT_DOUBLE_EQ(trainer->step().lr, 0.5 * 3 / 5) << "two steps are done";
  trainer->set("lr", "1");
  EXPECT_DOUBLE_EQ(trainer->step().lr, 2.0 / 5);
}

TEST(LearningRate, WarnsOncePastTheEndOfItsSchedule) {
  std::vector<std::string> warnings;
  Training training = with(R"({"lr_schedule": "cosine", "lr": 0.01, "warmup": 0, "lr_steps": 2})");
  training.warnings = &warnings;
  const auto trainer = training.trainer();
  for (int step = 1; step <= 2; ++step) trainer->step();
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(trainer->step_past_schedule(), 0);
  for (int step = 3; step <= 5; ++step) EXPECT_EQ(trainer->step().lr, 0);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(says(warnings[0], {"lr_schedule cosine ended after lr_steps 2", "from step 3 on the learning rate stays 0"}));
  EXPECT_EQ(trainer->step_past_schedule(), 3);
}

TEST(LearningRate, ASettingThatContradictsTheOthersChangesNothing) {
  const auto trainer = with(R"({"lr": 0.5, "warmup": 0, "lr_steps": 10, "lr_schedule": "linear"})").trainer();
  const std::string before = trainer->recipe().json();
  EXPECT_TRUE(says(error_of([&] { trainer->set("lr_schedule", "\"wsd\""); }), "lr_decay_steps"));
  EXPECT_TRUE(says(error_of([&] { trainer->set("warmup", "10"); }), "warmup 10"));
  EXPECT_TRUE(says(error_of([&] { trainer->set("lr_min", "0.75"); }), "lr_min 0.75"));
  EXPECT_EQ(error_of([&] { trainer->set("clip", "2"); }).code(), Code::unsupported);
  EXPECT_EQ(trainer->recipe().json(), before);
  EXPECT_EQ(trainer->step().lr, 0.5);
}

TEST(LearningRate, OfARecipeThatContradictsItselfMakesNoTrainer) {
  Training training = with(R"({"warmup": 20, "lr_steps": 10})");
  training.recipe.set("lr_schedule", "\"cosine\"");  // merge() would refuse it
  EXPECT_TRUE(refuses({"warmup 20", "lr_steps 10"}, [&] { training.trainer(); }));
}

TEST(LearningRate, OfTheHostIsAskedOnceAStepForItsSuccessfulSteps) {
  const auto trainer = with(R"({"warmup": 0})").trainer();
  std::vector<int64_t> asked;
  trainer->set_schedule([&](int64_t k) {
    asked.push_back(k);
    return 0.25 / static_cast<double>(k + 1);
  });
  EXPECT_EQ(trainer->step().lr, 0.25);
  EXPECT_TRUE(skipped_step(*trainer).skipped);
  EXPECT_EQ(trainer->step().lr, 0.125);
  std::optional<StepReport> report;
  while (!report) report = trainer->advance(0);
  EXPECT_EQ(report->lr, 0.25 / 3);
  EXPECT_EQ(asked, (std::vector<int64_t>{0, 1, 1, 2}));
  EXPECT_NE(trainer->set_schedule({}), nullptr) << "what was there comes back";
  EXPECT_EQ(trainer->step().lr, 1e-3);
  EXPECT_EQ(asked.size(), 4U);
}

TEST(LearningRate, OfTheHostGivesTheStateOfTheSameSchedule) {
  const Training training = with(R"({"lr": 0.01, "warmup": 2, "lr_schedule": "inverse_sqrt"})");
  const auto own = training.trainer(), hosts = Training{.recipe = {.batch = 3}}.trainer();
  hosts->set_schedule([table = schedule_choice(training.recipe)](int64_t k) { return table.at(k); });
  for (int step = 0; step < 5; ++step) EXPECT_EQ(own->step().lr, hosts->step().lr);
  EXPECT_EQ(own->state_digest(), hosts->state_digest());
}

TEST(LearningRate, OfTheHostThatFailsOrIsNoneLosesNothing) {
  const auto trainer = with(R"({"warmup": 0})").trainer(), undisturbed = with(R"({"warmup": 0})").trainer();
  for (const auto* t : {&trainer, &undisturbed}) (*t)->step();
  const std::string before = trainer->state_digest();
  for (const double wrong : {std::nan(""), HUGE_VAL, -HUGE_VAL, -1e-9}) {
    trainer->set_schedule([wrong](int64_t) { return wrong; });
    for (int call = 0; call < 2; ++call) {
      const auto step = [&] { call == 0 ? static_cast<void>(trainer->step()) : static_cast<void>(trainer->advance(0)); };
      EXPECT_TRUE(refuses(Code::callback, {text("after 1 successful steps must be a finite number of at least 0, got ", wrong)}, step));
    }
  }
  trainer->set_schedule([](int64_t) -> double { throw std::runtime_error("mine"); });
  EXPECT_THROW(trainer->step(), std::runtime_error);
  EXPECT_EQ(trainer->state_digest(), before);
  EXPECT_EQ(trainer->steps(), 1);
  std::vector<float> gradient(12);
  trainer->gradient("final_norm.gamma", plain_view("", DType::f32, {12}, gradient.data()));  // still that of the last whole step
  trainer->set_schedule({});
  for (const auto* t : {&trainer, &undisturbed}) (*t)->step();
  EXPECT_EQ(trainer->state_digest(), undisturbed->state_digest()) << "the same rows, the same random numbers";
}

TEST(LearningRate, MayBeZero) {
  const auto trainer = with(R"({"weight_decay": 0})").trainer();
  trainer->set_schedule([](int64_t) { return 0.0; });
  EXPECT_EQ(trainer->step().lr, 0);
}

}  // namespace
}  // namespace st
