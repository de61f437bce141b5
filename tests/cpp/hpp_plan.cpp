// A plan of a run on a machine that is not here, through scaletrain.hpp.
#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

Model planned_gpt() {
  ContextOptions options;
  options.late_parameters = true;
  const Context context(options);
  return {context, "gpt", R"({"layers": 2, "width": 64, "heads": 4, "context": 32, "vocabulary": 300})", 1};
}

Plan plan_of_rank_3() {
  const Model model = planned_gpt();
  const Recipe recipe(R"({"ranks": 4, "batch": 4, "zero": 1})");
  return {model, recipe, R"({"machine": "v100-32g", "rank": 3, "simulate": true})"};
}

TEST_F(Hpp, APlanOutlivesModelRecipeAndContext) {
  Plan plan = plan_of_rank_3();
  EXPECT_TRUE(has(plan.json(), R"({"rank":3,"world":4,"position":{"data":3,"tensor":0,"stage":0})")) << plan.json();
  EXPECT_TRUE(has(plan.text(), "rank 3 of 4 (4 data x 1 tensor x 1 stages) on v100-32g\n")) << plan.text();
  EXPECT_EQ(Recipe(plan.recipe()).value("zero"), "1");
  EXPECT_TRUE(has(plan.report(), "Plan of rank 3 of 4"));
  EXPECT_TRUE(has(plan.trace(), "\"process_name\""));
  plan.close();
  EXPECT_EQ(thrown_status([&] { plan.json(); }), Status::invalid_handle);
}

TEST_F(Hpp, ATrainerForecastsItsStep) {
  const Sine sine;
  EXPECT_TRUE(has(sine.trainer.forecast(), R"("measured_seconds":null)"));
  EXPECT_EQ(thrown_status([&] { sine.trainer.forecast("{}"); }), Status::invalid_argument);
}

TEST_F(Hpp, APlanNamesWhatIsWrong) {
  const Model model = planned_gpt();
  const Recipe recipe;
  EXPECT_EQ(thrown_status([&] { Plan(model, recipe, R"({"machin": "h200"})"); }), Status::invalid_argument);
  EXPECT_EQ(thrown_status([&] { Plan(model, recipe, R"({"machine": "h100"})"); }), Status::invalid_argument);
  EXPECT_TRUE(has(last_error(Status::invalid_argument).what(), "did you mean h100-sxm?"));
}

}  // namespace
