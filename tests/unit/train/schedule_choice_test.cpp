#include "recipe/schedule_choice.h"

#include "refusal.h"

namespace st {
namespace {

testing::AssertionResult json_refused(const char* json, std::initializer_list<std::string_view> words) {
  return refuses(words, [&] { schedule_from(json); });
}

TEST(ScheduleChoice, EveryKeyOfARecipeThatIsOfSchedulesReachesTheSchedule) {
  Recipe recipe;
  recipe.merge(
      R"({"lr_schedule": "wsd", "lr": 0.5, "warmup": 2, "lr_steps": 10, "lr_min": 0.25, "lr_decay_steps": 4, "lr_decay": "1-sqrt"})");
  EXPECT_EQ(schedule_choice(recipe).at(0), 0.25);
  EXPECT_EQ(schedule_choice(recipe).at(7), 0.375) << "1 - sqrt(1/4)";
  EXPECT_EQ(schedule_choice(recipe).at(10), 0.25);
  recipe.merge(R"({"lr_schedule": "cosine", "warmup": 0, "lr_steps": 7, "lr_cycles": 3, "lr_cycle_growth": 2})");
  for (const int64_t k : {0, 1, 3}) EXPECT_EQ(schedule_choice(recipe).at(k), 0.5) << k;
  recipe.merge(R"({"lr_schedule": "polynomial", "lr_steps": 2, "lr_power": 3})");
  EXPECT_EQ(schedule_choice(recipe).at(1), 0.25 + 0.25 / 8);
  recipe.merge(R"({"lr_schedule": "one_cycle", "lr_steps": 9, "lr_pct_start": 0.5, "lr_div_factor": 4, "lr_final_div_factor": 8})");
  EXPECT_EQ(schedule_choice(recipe).at(0), 0.125);
  EXPECT_EQ(schedule_choice(recipe).at(8), 0.125 / 8);
  EXPECT_GT(schedule_choice(recipe).at(3), schedule_choice(recipe).at(2)) << "it rises to (0.5 x 9 - 1)";
  EXPECT_LT(schedule_choice(recipe).at(5), schedule_choice(recipe).at(4));
  recipe.merge(R"({"lr_schedule": "table", "lr_table": "0:3 5:1"})");
  EXPECT_EQ(schedule_choice(recipe).at(5), 1);
}

TEST(ScheduleChoice, TheKeysAreThoseOfTheRecipeThatItsSchedulesHaveTheirNamesFrom) {
  for (const RecipeKey& key : recipe_keys())
    EXPECT_EQ(is_schedule_key(key.name), key.name.starts_with("lr") || key.name == "warmup") << key.name;
}

TEST(ScheduleChoice, OfJsonTakesTheRecipesKeysAndDefaults) {
  EXPECT_EQ(schedule_from("").at(0), 1e-3 / 20);
  EXPECT_EQ(schedule_from("{}").at(1000), 1e-3);
  for (const char* json : {R"({"schedule": "linear", "lr": 2, "warmup": 0, "lr_steps": 4})",
                           R"({"lr_schedule": "linear", "lr": 2, "warmup": 0, "lr_steps": 4})"})
    EXPECT_EQ(schedule_from(json).at(1), 1.5);
}

TEST(ScheduleChoice, OfJsonRefusesWhatIsNoKeyOfSchedules) {
  EXPECT_TRUE(json_refused(R"({"lr_cycle": 2})", {"schedule: unknown key \"lr_cycle\"", "did you mean \"lr_cycles\"?"}));
  EXPECT_TRUE(json_refused(R"({"batch": 2})", {"schedule: unknown key \"batch\""}));
  EXPECT_TRUE(json_refused(R"({"schedule": "linear", "lr_schedule": "linear"})", {"schedule", "lr_schedule", "one of them"}));
  EXPECT_TRUE(json_refused(R"({"schedule": "cosin"})", {"schedule: schedule must be one of", "cosine", "got \"cosin\""}));
  EXPECT_TRUE(json_refused(R"({"lr": -1})", {"schedule: lr must be a number in [0, inf), got -1"}));
  EXPECT_TRUE(json_refused(R"({"warmup": 2.5})", {"schedule: warmup", "whole number", "2.5"}));
  EXPECT_TRUE(json_refused("[1]", {"schedule: must be a JSON object"}));
  EXPECT_TRUE(json_refused("{", {"schedule"}));
  EXPECT_TRUE(json_refused(R"({"schedule": "cosine"})", {"cosine", "lr_steps"}));
}

TEST(DefaultWarmUp, GivesWayToAShortRunAlone) {
  Recipe recipe;
  recipe.merge(R"({"lr": 1, "lr_schedule": "cosine", "lr_steps": 10})");
  EXPECT_EQ(schedule_choice(recipe).at(0), 1) << "a tenth of ten steps";
  recipe.set("lr_steps", "100");
  EXPECT_EQ(schedule_choice(recipe).at(0), 0.05) << "the default of 20";
  recipe.set("lr_steps", "10");
  recipe.set("warmup", "20");
  EXPECT_THROW(schedule_choice(recipe), Error) << "it was given";
}

}  // namespace
}  // namespace st
