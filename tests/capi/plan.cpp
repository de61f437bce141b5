// st_plan: plans of runs that are not here, refused options, what a plan needs of the objects it was made of.
#include "sanitized.h"
#include "small_run.h"

namespace {

using namespace st::test;

constexpr const char* kGpt = R"({"layers": 2, "width": 64, "heads": 4, "context": 32, "vocabulary": 300})";

constexpr const char* kProfile = R"({"version": 2, "device": "cpu", "kernel_class": "avx2", "threads": 1, "alignment": 64,
  "memory_bytes": 0, "reserved_bytes": 0, "measured": {"clock": 0}, "table": {"fp32_flops_per_cycle": 0, "bf16_flops_per_cycle": 0}})";

/// A model whose parameters are never made.
struct PlannedModel {
  explicit PlannedModel(const char* sizes = kGpt) {
    auto options = filled(st_context_options_init);
    options.late_parameters = 1;
    context = hold<HeldContext>(st_context_create, &options);
    model = hold<HeldModel>(st_model_builtin, context, "gpt", sizes, 1);
  }
  HeldContext context;
  HeldModel model;
};

bool has(const std::string& json, const char* words) { return json.find(words) != std::string::npos; }

TEST(Plans, OfARankOfFourThousandNeedNoMemoryForTheModel) {
  const int64_t blocks = st::kSanitized ? 1 : 6;  // of a stage
  const PlannedModel gpt(
      (R"({"width": 12288, "heads": 96, "context": 2048, "vocabulary": 51200, "layers": )" + std::to_string(16 * blocks) + "}").c_str());
  const auto recipe = hold<HeldRecipe>(
      st_recipe_create, R"({"ranks": 4096, "stages": 16, "tensor": 8, "zero": 1, "precision": "bf16", "batch": 1, "accumulate": 16})");
  const auto plan = hold<HeldPlan>(st_plan_create, gpt.model, recipe, R"({"machine": "h100-sxm", "rank": 1733, "late_parameters": false})");
  const std::string json = text_of(st_plan_json, plan);
  EXPECT_TRUE(has(json, R"("position":{"data":24,"tensor":5,"stage":6})")) << json;
  EXPECT_TRUE(has(json, R"("measured":false)")) << json;
  // fp32 masters of the blocks, whose products and first biases are split by 8, and whose other vectors are not.
  const int64_t h = 12288, block = (12 * h * h + 7 * h) / 8 + 6 * h;
  EXPECT_EQ(number_in(json, "parameters"), 4 * blocks * block);
  EXPECT_TRUE(has(text_of(st_plan_text, plan), "rank 1733 of 4096 (32 data x 8 tensor x 16 stages) on h100-sxm\ntimes: estimates, "));
  EXPECT_EQ(memory_of(gpt.context).peak_bytes, 0);
}

TEST(Plans, RefuseWrongOptionsAndSayHowToPutThemRight) {
  const PlannedModel gpt;
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"ranks": 4, "batch": 4})");
  const std::pair<const char*, const char*> cases[] = {
      {R"({"machin": "h200"})",
       "st_plan_create: options: option \"machin\" is unknown; did you mean machine? There are: machine, troubles, failures, rank, "
       "device_memory, ranks_per_node, link, processes, late_parameters, auto, simulate, scaling, fixes"},
      {R"({"machine": "h100"})",
       "plan: machine \"h100\" is unknown; did you mean h100-sxm? Or give the file of `scaletrain bench --calibrate FILE`"},
      {R"({"machine": "a100-90g"})",
       "plan: machine \"a100-90g\" is unknown; did you mean a100-40g, a100-80g? Or give the file of `scaletrain bench --calibrate FILE`"},
      {R"({"machine": "h200", "link": "100"})", "plan: link \"100\" is unknown; use one of 10g, 25g, 100g, 400g, nvlink"},
      {R"({"machine": "h200", "rank": 4})", "st_plan_create: options: rank is 4; a run of 4 ranks has ranks 0 to 3"},
      {R"({"machine": "h200", "auto": 1})", "st_plan_create: options: auto must be true or false, got 1"},
      {R"({"machine": {"version": 99}})",
       "machine: version must be 2, got 99; give a file that `scaletrain bench --calibrate FILE` of this version wrote"},
      {R"({"machine": "h200", "troubles": [{"rank": 4}]})", "st_plan_create: options: a trouble's rank must be 0 to 3, got {\"rank\":4}"}};
  for (const auto& [options, message] : cases) {
    HeldPlan plan;
    EXPECT_EQ(st_plan_create(gpt.model, recipe, options, plan.out()), ST_INVALID_ARGUMENT) << options;
    EXPECT_STREQ(st_last_error(), message);
    EXPECT_EQ(static_cast<st_plan*>(plan), nullptr);
  }
}

TEST(Plans, SayThatAnotherVersionMeasuredTheMachine) {
  const PlannedModel gpt;
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 4})");
  const char* version = "";
  ASSERT_TRUE(works(st_version(&version)));
  const auto measured_by = [&](const std::string& library) {
    const std::string options =
        R"({"machine": {"version": 2, "name": "an abacus", "source": "by hand", "measured": true, "processor": "beads",
      "library": ")" +
        library + R"(", "device_memory_bytes": 1000000000, "ranks_per_node": 1, "machine": )" + kProfile + R"(,
      "in_node": {"latency": 0, "bytes_per_second": 0}, "between_nodes": {"latency": 0, "bytes_per_second": 0},
      "to_host": {"latency": 0, "bytes_per_second": 0},
      "rates": [{"threads": 1, "ranks": 1, "step_seconds": 0, "memory_bytes": 0, "ops": [
        {"name": "memory", "seconds_per_flop": 1e-9, "seconds_per_activation": 0, "seconds_by_bytes": [[0, 1e-6]]}]}]}})";
    return hold<HeldPlan>(st_plan_create, gpt.model, recipe, options.c_str());
  };
  const std::string differs =
      "by hand; measured by version 0.0.1, this is " + std::string(version) + ", so measure again with `scaletrain bench --calibrate FILE`";
  const auto old = measured_by("0.0.1"), own = measured_by(version);
  EXPECT_TRUE(has(text_of(st_plan_text, old), ("times: measured, " + differs + "\n").c_str())) << text_of(st_plan_text, old);
  EXPECT_TRUE(has(text_of(st_plan_json, old), (R"("source":")" + differs + '"').c_str())) << text_of(st_plan_json, old);
  EXPECT_TRUE(has(text_of(st_plan_text, own), "times: measured, by hand\n")) << "another processor is allowed";
}

TEST(Plans, SayThatTheMachinesLinkIsReplaced) {
  const PlannedModel gpt;
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 4})");
  const auto own = hold<HeldPlan>(st_plan_create, gpt.model, recipe, R"({"machine": "a100-80g"})");
  const auto slow = hold<HeldPlan>(st_plan_create, gpt.model, recipe, R"({"machine": "a100-80g", "link": "10g"})");
  EXPECT_TRUE(has(text_of(st_plan_text, slow), "; the link between nodes replaced by 10g\n")) << text_of(st_plan_text, slow);
  EXPECT_TRUE(has(text_of(st_plan_json, slow), R"(; the link between nodes replaced by 10g","measured")"));
  EXPECT_FALSE(has(text_of(st_plan_text, own), "replaced"));
}

TEST(Plans, RefuseAModelWithoutALoss) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto graph = hold<HeldGraph>(st_graph_create, context);
  const int64_t dims[] = {ST_BATCH, 4};
  st_value x = 0, y = 0;
  ASSERT_TRUE(works(st_graph_input(graph, "x", ST_F32, 2, dims, &x)));
  ASSERT_TRUE(works(st_layer_linear(graph, "y", x, R"({"outputs": 2})", &y)));
  ASSERT_TRUE(works(st_graph_output(graph, "y", y)));
  const auto model = hold<HeldModel>(st_model_create, graph, 1);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, nullptr);
  HeldPlan plan;
  EXPECT_EQ(st_plan_create(model, recipe, R"({"machine": "h200"})", plan.out()), ST_UNSUPPORTED);
  EXPECT_STREQ(st_last_error(),
               "st_plan_create: the model has no loss of its own; give its graph one (st_graph_loss), whose step can be planned");
}

TEST(Plans, GiveTheRecipeThatTheSearchFound) {
  const PlannedModel gpt;
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"ranks": 4, "batch": 4})");
  const auto full = hold<HeldPlan>(st_plan_create, gpt.model, recipe, R"({"machine": "h200"})");
  EXPECT_EQ(text_of(st_plan_recipe, full), text_of(st_recipe_json, recipe));
  const int64_t room = number_in(text_of(st_plan_json, full), "device_total") - 1;
  const std::string less = R"({"machine": "h200", "device_memory": )" + std::to_string(room);
  const auto refused = hold<HeldPlan>(st_plan_create, gpt.model, recipe, (less + "}").c_str());
  EXPECT_TRUE(has(text_of(st_plan_text, refused), "does not fit, 1 B too much")) << text_of(st_plan_text, refused);
  const auto found = hold<HeldPlan>(st_plan_create, gpt.model, recipe, (less + R"(, "auto": true})").c_str());
  const std::string of_search = text_of(st_plan_json, found), better = text_of(st_plan_recipe, found);
  EXPECT_TRUE(has(of_search, R"("fits":true)")) << of_search;
  const auto settings = hold<HeldRecipe>(st_recipe_create, better.c_str());
  const auto again = hold<HeldPlan>(st_plan_create, gpt.model, settings, (less + "}").c_str());
  EXPECT_EQ(number_in(text_of(st_plan_json, again), "device_total"), number_in(of_search, "device_total"));
  EXPECT_LE(number_in(of_search, "device_total"), room);
}

TEST(Plans, OutliveModelRecipeAndContext) {
  HeldPlan plan;
  std::string before;
  {
    const PlannedModel gpt;
    const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"ranks": 4, "batch": 4})");
    plan = hold<HeldPlan>(st_plan_create, gpt.model, recipe, R"({"machine": "v100-32g", "simulate": true, "fixes": true})");
    before = text_of(st_plan_json, plan);
  }
  EXPECT_EQ(text_of(st_plan_json, plan), before);
  EXPECT_TRUE(has(text_of(st_plan_text, plan), "all 4 ranks, simulated"));
  EXPECT_TRUE(has(text_of(st_plan_recipe, plan), R"("ranks":4)"));
  EXPECT_TRUE(has(text_of(st_plan_report, plan), "rank 0 of 4"));
  EXPECT_TRUE(text_of(st_plan_trace, plan).starts_with("[\n{\"name\":\"process_name\""));
}

TEST(Plans, HaveATraceOnlyOfASimulation) {
  const PlannedModel gpt;
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 4})");
  const auto plan = hold<HeldPlan>(st_plan_create, gpt.model, recipe, R"({"machine": "h200"})");
  const char* json = nullptr;
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_plan_trace(plan, &json), {"there is no timeline; plan with simulate"}));
}

TEST(Plans, ForecastATrainersStep) {
  SineRun sine;
  EXPECT_TRUE(has(text_of(st_trainer_forecast, sine.trainer, nullptr), R"("measured_seconds":null)"));
  ASSERT_TRUE(works(sine.step()));
  const std::string json = text_of(st_trainer_forecast, sine.trainer, nullptr);
  EXPECT_FALSE(has(json, R"("measured_seconds":null)")) << json;
  EXPECT_TRUE(has(json, R"("measured":false)")) << json;
  EXPECT_TRUE(has(json, R"("ranks":[{"rank":0,"milliseconds":)")) << json;
  const char* answer = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_forecast(sine.trainer, "{}", &answer), {"machine: version is missing"}));
}

}  // namespace
