// A recipe: keys by name, each checked when it is set.
#include <cstring>

#include "small_run.h"

namespace {

using namespace st::test;

class Recipe : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(works(st_recipe_create(nullptr, recipe.out()))); }
  std::string get(const char* key) { return text_of(st_recipe_get, recipe, key); }
  std::string json() { return text_of(st_recipe_json, recipe); }
  HeldRecipe recipe;
};

TEST_F(Recipe, GivesBackWhatWasSet) {
  EXPECT_TRUE(works(st_recipe_set(recipe, "batch", "12")));
  EXPECT_EQ(get("batch"), "12");
  EXPECT_TRUE(works(st_recipe_set(recipe, "optimizer", "\"adamw\"")));
  EXPECT_EQ(get("optimizer"), "\"adamw\"");
  HeldRecipe copy;
  EXPECT_TRUE(works(st_recipe_create(json().c_str(), copy.out()))) << "a recipe's own JSON makes a recipe";
}

// Every key and value: tests/unit/train/recipe_test.cpp.
TEST_F(Recipe, WhatIsRefusedChangesNothing) {
  const std::string before = json();
  const char* value = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_recipe_set(recipe, "batsch", "1"), {"batsch", "batch"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_recipe_set(recipe, "lr", "-0.001"), {"lr", "-0.001", "[0, inf)"}));
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, st_recipe_set(recipe, "lr", "-nan"), {"recipe: lr must be a number in [0, inf), got -nan"}));  // by printf
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_recipe_get(recipe, "wieght_decay", &value), {"weight_decay"}));
  st_recipe* made = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_recipe_create(R"({"batch": 2, "lr": -1})", &made), {"lr", "-1"}));
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(json(), before);
}

TEST_F(Recipe, IsCopiedByItsTrainer) {
  SineRun run;
  ASSERT_TRUE(works(st_recipe_set(run.recipe, "lr", "123")));
  auto report = filled(st_step_report_init);
  ASSERT_TRUE(works(run.step(&report)));
  EXPECT_EQ(report.lr, 1e-3);
}

TEST(RecipeKeys, AreListedWithDefaultsAndHelp) {
  const char* keys = nullptr;
  ASSERT_TRUE(works(st_recipe_keys(&keys)));
  for (const char* word : {"\"name\":\"lr\"", "\"default\":0.001", "\"allowed\":\"[0,inf)\"", "\"help\":", "\"name\":\"batch\"",
                           "\"other_names\":[\"learning_rate\""})
    EXPECT_NE(std::strstr(keys, word), nullptr) << word;
}

}  // namespace
