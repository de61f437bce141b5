#include "recipe/recipe.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "base/json.h"
#include "base/text.h"
#include "ir/cuts.h"
#include "ir/print.h"
#include "models/gpt.h"
#include "recipe/kernel_needs_of.h"
#include "refusal.h"
#include "training.h"

namespace st {
namespace {

const KernelNeeds kReference = kernel_needs({.device = "reference", .kernel_class = "reference"});

std::string refusal_of(const std::string& key, const std::string& value) {
  Recipe recipe;
  const std::string message = refusal([&] { recipe.set(key, value); });
  EXPECT_EQ(recipe.json(), Recipe{}.json()) << "a refused value changes nothing";
  return message;
}

/// Whether a number is in the interval: "[0,1)", or the first word of "[1,inf) auto".
bool has(const std::string& interval, double number) {
  const size_t comma = interval.find(','), end = interval.find_first_of("])");
  const double low = std::stod(interval.substr(1, comma - 1)), high = std::stod(interval.substr(comma + 1));
  return (number > low || (number == low && interval[0] == '[')) && (number < high || (number == high && interval[end] == ']'));
}

std::vector<std::string> words_in(const std::string& allowed) {
  std::istringstream stream(allowed);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Whether a key's row allows a value: JSON, or a number that JSON cannot express.
bool is_in_domain(const RecipeKey& key, const std::string& value) {
  const bool is_number = value.find_first_of("0123456789NI") <= 1 && value[0] != '"';
  const auto words = words_in(key.allowed);
  const auto is_word = [&](const std::string& word) { return value == '"' + word + '"'; };
  if (is_word("TABLE")) return false;  // the word in the row stands for a table
  const bool has_scopes = std::ranges::count(words, "SCOPES") > 0 && value.size() > 2 && value.find(' ') == std::string::npos;
  const bool has_device = std::ranges::count(words, "NAME") > 0 && value.size() > 2 &&
                          value.find_first_not_of("\"abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  if (key.type == "text") return value[0] == '"' && (words.empty() || has_scopes || has_device || std::ranges::any_of(words, is_word));
  if (key.type == "boolean") return value == "true" || value == "false";
  if (key.type == "list") return value == "[]";
  if (!is_number) return words.size() > 1 && std::any_of(words.begin() + 1, words.end(), is_word);
  const double number = std::strtod(value.c_str(), nullptr);
  const bool is_whole = number == std::floor(number) && (std::abs(number) < 0x1p63 || value == "9223372036854775807");
  return has(key.allowed, number) && (key.type == "real" || is_whole);
}

TEST(Recipe, EveryKeyTakesItsDomainAndRefusesTheRestWithKeyDomainAndValue) {
  const std::vector<std::string> common = {"NaN",
                                           "Infinity",
                                           "-Infinity",
                                           "1e400",
                                           "-1e400",
                                           "9223372036854775807",
                                           "9223372036854775808",
                                           "18446744073709551616",
                                           "1e+300",
                                           "1e-300",
                                           "-1",
                                           "0",
                                           "1",
                                           "-0.25",
                                           "0.5",
                                           "8.0",
                                           "2.5",
                                           "true",
                                           "false",
                                           "null",
                                           "\"8\"",
                                           "\"auto\"",
                                           "\"no such word\"",
                                           "\"\"",
                                           "[]",
                                           "{}"};
  for (const RecipeKey& key : recipe_keys()) {
    std::vector<std::string> values = common;
    if (key.type == "text")
      for (const std::string& word : words_in(key.allowed)) values.push_back('"' + word + '"');
    if (const size_t comma = key.allowed.find(','); key.allowed.starts_with('[') || key.allowed.starts_with('('))
      for (const std::string& bound :
           {key.allowed.substr(1, comma - 1), key.allowed.substr(comma + 1, key.allowed.find_first_of("])") - comma - 1)})
        if (bound != "inf") values.push_back(bound);
    EXPECT_TRUE(is_in_domain(key, key.standard)) << key.name;
    for (const std::string& value : values) {
      SCOPED_TRACE(text(key.name, " ", value));
      if (!is_in_domain(key, value)) {
        EXPECT_TRUE(says(refusal_of(key.name, value), {text("recipe: ", key.name, " must be ", key.domain, ", got ", value)}));
        continue;
      }
      Recipe recipe;
      recipe.set(key.name, value);
      const Json taken = parse_json(recipe.get(key.name), key.name), given = parse_json(value, key.name);
      if (given.is_number()) {
        EXPECT_EQ(taken.number(), given.number());
      } else {
        EXPECT_EQ(taken.dump(), value);
      }
    }
  }
}

TEST(Recipe, AValueThatIsNoJsonIsNamedWithItsKey) {
  EXPECT_EQ(refusal_of("lr", "fast"), "recipe: lr must be a number in [0, inf), as JSON, got fast");
  EXPECT_TRUE(says(refusal_of("optimizer", "sgd"), {"recipe: optimizer must be one of", "got sgd", "a string needs quotes"}));
  EXPECT_TRUE(says(refusal_of("seed", ""), {"recipe: seed must be a whole number in [0, 2^63)", "got nothing"}));
  EXPECT_TRUE(says(refusal_of("groups", R"([{"pattern" "*"}])"), {"groups", "line 1, column 15"}));
}

TEST(Recipe, AValueInAFileIsRefusedAsOneThatIsSet) {
  EXPECT_EQ(refusal([] { Recipe{}.merge(R"({"lr": 1e999, "seed": 3})"); }), "recipe: lr must be a number in [0, inf), got 1e999");
}

TEST(Recipe, AnUnknownKeyNamesTheNearest) {
  EXPECT_TRUE(says(refusal_of("learning_rate", "2"), {"unknown key \"learning_rate\"; did you mean \"lr\"?"}));
  EXPECT_TRUE(says(refusal_of("gradient_accumulation_steps", "2"), {"did you mean \"accumulate\"?"}));
  EXPECT_TRUE(says(refusal([] { Recipe{}.merge(R"({"lr": 0.1, "gradient_accumulation_steps": 2})"); }), {"did you mean \"accumulate\"?"}));
  for (const char* length : {"epochs", "num_train_epochs", "max_steps"})
    EXPECT_TRUE(says(refusal_of(length, "2"), {text("unknown key \"", length, "\""), "pass it to run()", "--steps"}));
  EXPECT_TRUE(says(refusal_of("qqqqqqqq", "2"), {"st_recipe_keys", "lists all"}));
  EXPECT_TRUE(says(refusal_of("acumulate", "2"), {"did you mean \"accumulate\"?"}));
  EXPECT_TRUE(says(refusal_of("weight-decay", "0"), {"did you mean \"weight_decay\"?"}));
  EXPECT_THROW(Recipe{}.get("zzz"), Error);
}

TEST(Recipe, JsonComesBackAsItWentOut) {
  Recipe recipe;
  recipe.merge(R"({"batch": 3, "accumulate": 4, "lr": 0.1, "epsilon": 1e-12, "clip": 0, "seed": 9007199254740993, "device": "reference"})");
  EXPECT_EQ(recipe.batch, 3);
  EXPECT_EQ(recipe.lr, 0.1);
  EXPECT_EQ(recipe.epsilon, 1e-12);
  EXPECT_EQ(recipe.seed, 9007199254740993);
  EXPECT_EQ(recipe.device, "reference");
  Recipe again;
  again.merge(recipe.json());
  EXPECT_EQ(again.json(), recipe.json());
  for (const RecipeKey& key : recipe_keys()) {
    Recipe one;
    one.set(key.name, recipe.get(key.name));
    EXPECT_EQ(one.get(key.name), recipe.get(key.name));
    EXPECT_EQ(Recipe{}.get(key.name), key.standard);
  }
}

TEST(Recipe, AScheduleWithoutItsLengthIsRefusedWhenTheRecipeIsMade) {
  for (const char* schedule : {"cosine", "linear", "polynomial", "wsd", "one_cycle"})
    EXPECT_TRUE(refuses({schedule, "needs lr_steps"}, [&] { Recipe{}.merge(text(R"({"lr_schedule": ")", schedule, "\"}")); }));
  EXPECT_TRUE(refuses({"needs lr_table"}, [] { Recipe{}.merge(R"({"lr_schedule": "table"})"); }));
  Recipe recipe;
  recipe.merge(R"({"lr_steps": 100, "lr_schedule": "cosine"})");
  EXPECT_EQ(recipe.lr_steps, 100);
}

TEST(Recipe, AScheduleMayBeATableWhichIsProvedWhenItIsSet) {
  Recipe recipe;
  recipe.merge(R"({"stages": 2, "micro_batches": 2, "schedule": "0F0,0F1,0B0,0B1\n1F0,1B0,,1F1,1B1"})");
  EXPECT_EQ(print_schedule(schedule_of(recipe)), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  Recipe again;
  again.merge(recipe.json());
  EXPECT_EQ(again.schedule, recipe.schedule);
  EXPECT_TRUE(says(refusal_of("schedule", R"("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1")"),
                   {"it never ends", "stage 0 waits in 0B0 for 1B0 of stage 1; stage 1 waits in 1F1 for 0F1 of stage 0"}));
  EXPECT_TRUE(says(refusal_of("schedule", R"("0F0,0X0")"), {"line 1, cell \"0X0\""}));
  const auto refused = [&](const char* keys) {
    Recipe other = recipe;
    other.merge(keys);
    return refusal([&] { static_cast<void>(plan_training(build_gpt(odd_gpt()), other, kReference)); });
  };
  EXPECT_TRUE(says(refused(R"({"stages": 3})"), {"a table of 2 stages and 2 micro-batches; the recipe has 3 stages and 2 micro-batches"}));
  EXPECT_TRUE(says(refused(R"({"stages": 1})"), {"a table of 2 stages", "the recipe has 1 stage and"}));
  EXPECT_TRUE(says(refused(R"({"ranks": 4})"), {"2 micro-batches; the recipe has 2 stages and 1 micro-batches a step on each data rank"}));
  EXPECT_TRUE(says(refused(R"({"stage_chunks": 2})"), {"1 parts on each stage, but stage_chunks is 2"}));
}

TEST(Recipe, MergeTakesAllKeysOrNone) {
  Recipe recipe;
  EXPECT_THROW(recipe.merge(R"({"batch": 3, "lr": -1})"), Error);
  EXPECT_EQ(recipe.json(), Recipe{}.json());
  EXPECT_THROW(recipe.merge("[1]"), Error);
  EXPECT_THROW(recipe.merge("{"), Error);
  EXPECT_NO_THROW(recipe.merge(""));
}

TEST(Recipe, MicroBatchesAndAccumulateMustNotContradict) {
  Recipe recipe;
  EXPECT_EQ(recipe.step_micro_batches(), 1);
  recipe.accumulate = 3;
  EXPECT_EQ(recipe.step_micro_batches(), 3);
  recipe.micro_batches = 3;
  EXPECT_EQ(recipe.step_micro_batches(), 3);
  recipe.accumulate = 1;
  EXPECT_EQ(recipe.step_micro_batches(), 3);
  recipe.accumulate = 2;
  EXPECT_TRUE(refuses({"accumulate 2", "micro_batches is 3"}, [&] { recipe.step_micro_batches(); }));
  EXPECT_TRUE(refuses({"accumulate 4611686018427387904 on 2 ranks"},
                      [] { Recipe{.accumulate = int64_t{1} << 62, .ranks = 2}.step_micro_batches(); }));
}

TEST(Recipe, PlansNeedNoBackendButWhatItsKernelsNeed) {
  const auto needs = [](int64_t workspace, int64_t packed) {
    return KernelNeeds{.workspace = [=](auto&&...) { return workspace; }, .packing = [=](auto&&...) { return packed; }};
  };
  const Recipe recipe{.batch = 2, .accumulate = 2};
  const Plan none = plan_training(build_gpt(odd_gpt()), recipe, needs(0, 0)),
             some = plan_training(build_gpt(odd_gpt()), recipe, needs(4096, 64));
  EXPECT_EQ(none.memory.of(Arena::workspace), 0);
  EXPECT_EQ(none.memory.of(Arena::packed), 0);
  EXPECT_EQ(some.memory.of(Arena::workspace), 4096);
  EXPECT_EQ(some.memory.of(Arena::packed), 64 * std::ranges::count(some.instructions, Copy::of_step, &Instruction::makes));
  EXPECT_TRUE(makes(some, Copy::of_step));
  EXPECT_EQ(some.memory.of(Arena::parameters), none.memory.of(Arena::parameters));
}

TEST(Recipe, OffloadBeyondItsBudgetIsRefusedWithBothNumbers) {
  KernelNeeds needs = kernel_needs(Training{}.context()->backend(), 1);
  needs.has_own_memory = true;
  const auto planned = [&](const char* offload, int64_t budget) {
    Recipe recipe;
    recipe.set("offload", offload);
    recipe.set("offload_budget", std::to_string(budget));
    return plan_training(build_gpt(odd_gpt()), recipe, needs);
  };
  for (const char* offload : {"\"optimizer\"", "\"gradients\""}) {
    const int64_t bytes = planned(offload, 0).memory.host_bytes();
    EXPECT_EQ(planned(offload, bytes).memory.host_bytes(), bytes);
    EXPECT_TRUE(refuses(Code::out_of_memory, {text("(", bytes, " bytes)"), text("(", bytes - 1, " bytes)"), text("raise it to ", bytes)},
                        [&] { planned(offload, bytes - 1); }));
  }
  EXPECT_EQ(planned("\"none\"", 1).memory.host_bytes(), 0) << "a search may offload so much";
}

TEST(Recipe, PlansARankOfThousandsWithoutTheOthers) {
  const Program model = build_gpt({.layers = 2, .width = 64, .heads = 2, .context = 8, .vocabulary = 4096});
  const Recipe recipe{.ranks = 4096, .zero = 1};
  int64_t parameters = 0, states = 0;
  for (const Slot& slot : model.slots)
    if (slot.role == Role::parameter) parameters += slot.type.shape.elements();
  for (const int32_t rank : {0, 1, 300, 4095}) {
    PlanOptions options;
    options.rank = rank;
    const Plan plan = plan_training(model, recipe, kReference, options);
    for (const Slot& slot : plan.program.slots)
      if (slot.role == Role::optimizer) states += own_type(plan.program, slot).shape.elements();
    EXPECT_EQ(plan.program.rank, rank);
  }
  EXPECT_LT(parameters / 1024, 4096) << "some ranks have none";
  EXPECT_GT(states, 0);
  EXPECT_LE(states, 2 * 4 * 1024) << "a grain of each moment at most";
}

TEST(Recipe, PlansRunItsPassesInOrderAndSkipByName) {
  const Program model = build_gpt(odd_gpt());
  const Plan plan = plan_training(model, {.batch = 2}, kReference);
  std::vector<std::string> names;
  for (const PassRecord& pass : plan.passes) names.push_back(pass.name);
  EXPECT_EQ(names, (std::vector<std::string>{"dropout", "freeze", "autocast", "scale_loss", "autodiff", "fuse_loss", "recompute",
                                             "accumulate", "clip", "update", "fuse", "pack_weights", "memory_plan"}));

  std::vector<std::string> printed;
  const Plan bare =
      plan_training(model, {.batch = 2}, kReference,
                    {.skip = {"fuse"}, .print = [&](const std::string& pass, const std::string&) { printed.push_back(pass); }});
  EXPECT_EQ(bare.passes[10].name, "fuse");
  EXPECT_TRUE(bare.passes[10].skipped);
  EXPECT_EQ(printed.size(), 12U);
  EXPECT_GT(bare.instructions.size(), plan.instructions.size());
}

/// Those of the first rank are printed, so each of their passes is verified.
TEST(Recipe, RanksThatBeginTogetherHaveThePlansOfEachAlone) {
  const Program model = build_gpt({.layers = 2, .width = 8, .heads = 2, .context = 4, .vocabulary = 16});
  for (const Recipe& recipe :
       {Recipe{.batch = 2, .ranks = 3, .dropout = 0.1}, Recipe{.precision = "bf16", .batch = 2, .ranks = 2, .zero = 3},
        Recipe{.batch = 2, .accumulate = 2, .ranks = 4, .stages = 2, .zero = 1},
        Recipe{.precision = "fp16", .batch = 2, .ranks = 4, .tensor = 2}, Recipe{.batch = 2, .ranks = 2, .zero = 1, .recompute = "auto"}}) {
    BegunPlans begun;
    for (int32_t rank = 0; rank < mesh_of(recipe).ranks(); ++rank) {
      const MeshPosition at = position_of(mesh_of(recipe), rank);
      PlanOptions options;
      options.rank = at.data;
      options.tensor_rank = at.tensor;
      options.stage = at.stage;
      if (rank == 0) options.print = [](const std::string&, const std::string&) {};
      const Plan alone = plan_training(model, recipe, kReference, options);
      options.begun = &begun;
      const Plan together = plan_training(model, recipe, kReference, options);
      EXPECT_EQ(print(together.program), print(alone.program)) << rank;
      EXPECT_EQ(together.instructions, alone.instructions) << rank;
      EXPECT_EQ(together.memory.total(), alone.memory.total()) << rank;
      EXPECT_EQ(together.passes.size(), alone.passes.size()) << rank;
    }
    EXPECT_EQ(begun.size(), static_cast<size_t>(recipe.tensor));
  }
}

TEST(Recipe, ScopesToRecomputeAreWordsOrPatterns) {
  for (const char* value : {"block.*.mlp", "block.3,head", "none", "B_1-x/y:?", "\u00e4"}) {
    Recipe recipe;
    recipe.set("recompute", text("\"", value, "\""));
    EXPECT_EQ(recipe.recompute, value);
  }
  for (const char* value : {"", " ", "block.1, head", "a\\tb", "a\\u0000"})
    EXPECT_TRUE(says(refusal_of("recompute", text("\"", value, "\"")), {"none blocks attention full auto"})) << value;
}

TEST(Recipe, Fp16AloneScalesTheLoss) {
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    Recipe recipe;
    recipe.precision = precision;
    const auto scaler = recipe.loss_scaler();
    EXPECT_EQ(scaler.has_value(), recipe.precision == "fp16") << precision;
    const Plan plan = plan_training(build_gpt(odd_gpt()), recipe, kReference);
    EXPECT_EQ(std::ranges::count(plan.passes, "loss_scale", &PassRecord::name), scaler ? 1 : 0) << precision;
    EXPECT_EQ(plan.program.step.loss_scale >= 0, scaler.has_value()) << precision;
  }
}

TEST(Recipe, AResidualHasThePrecisionOrFp32) {
  Recipe recipe;
  recipe.merge(R"({"precision": "bf16", "residual_dtype": "fp16"})");
  const auto plan = [&] { return plan_training(build_gpt(odd_gpt()), recipe, kReference); };
  EXPECT_TRUE(refuses({"residual_dtype must be fp32 or that of precision, bf16, got fp16"}, plan));
  const auto stash = [&](const char* residual) {
    recipe.residual_dtype = residual;
    return plan().memory.of(Arena::stash);
  };
  EXPECT_LT(stash("bf16"), stash("fp32"));
}

TEST(Recipe, GradientsAreAddedInTheTypeInWhichTheyAreSentOrFp32) {
  Recipe recipe;
  recipe.merge(R"({"accumulate_dtype": "bf16", "accumulate": 2})");
  const auto plan = [&] { return plan_training(build_gpt(odd_gpt()), recipe, kReference); };
  EXPECT_TRUE(refuses({"accumulate_dtype must be fp32 or that of gradient_dtype, fp32, got bf16", "set gradient_dtype to bf16 too"}, plan));
  recipe.gradient_dtype = "bf16";
  const auto gradients = [&](const char* sums) {
    recipe.accumulate_dtype = sums;
    int64_t bytes = 0;
    for (const Slot& slot : plan().program.slots) bytes += slot.role == Role::gradient ? slot.type.bytes() : 0;
    return bytes;
  };
  EXPECT_EQ(gradients("bf16") * 2, gradients("fp32"));
}

TEST(Recipe, EveryLossScaleKeyReachesTheScaler) {
  Recipe recipe;
  recipe.merge(R"({"precision": "fp16", "loss_scale_initial": 512, "loss_scale_growth_factor": 4, "loss_scale_backoff_factor": 0.25,
                   "loss_scale_growth_interval": 7, "loss_scale_minimum": 2})");
  LossScale options = recipe.loss_scaler()->options();
  EXPECT_TRUE(options.dynamic);
  EXPECT_EQ(options.scale, 512);
  EXPECT_EQ(options.growth_factor, 4);
  EXPECT_EQ(options.backoff_factor, 0.25);
  EXPECT_EQ(options.growth_interval, 7);
  EXPECT_EQ(options.minimum, 2);
  recipe.set("loss_scale", "128");
  options = recipe.loss_scaler()->options();
  EXPECT_FALSE(options.dynamic);
  EXPECT_EQ(options.scale, 128);
  recipe.merge(R"({"loss_scale": 0, "loss_scale_minimum": 1024})");
  EXPECT_TRUE(refuses({"512 is below the minimum 1024"}, [&] { recipe.loss_scaler(); }));
}

TEST(Recipe, DropoutAndSeedReachEverySite) {
  const Plan plan = plan_training(build_gpt(odd_gpt()), {.dropout = 0.25, .seed = 9}, kReference);
  int sites = 0;
  for (const Section& section : plan.program.sections)
    for (const Node& node : section.graph.nodes) {
      if (node.op != Op::dropout) continue;
      ++sites;
      EXPECT_EQ(node.attrs.real("rate"), 0.25);
      EXPECT_EQ(node.attrs.integer("seed"), 9);
    }
  EXPECT_EQ(sites, 2 * (1 + 2 * 2)) << "in forward and in backward";
}

TEST(Recipe, KeysThatWereNotGivenFollowTheOptimizer) {
  Recipe recipe;
  recipe.merge(R"({"weight_decay": 0.2, "optimizer": "lion"})");
  EXPECT_EQ(recipe.lr, 1e-4);
  EXPECT_EQ(recipe.beta2, 0.99);
  EXPECT_EQ(recipe.weight_decay, 0.2) << "given";
  recipe.set("lr", "0.5");
  recipe.set("optimizer", "\"rmsprop\"");
  EXPECT_EQ(recipe.lr, 0.5) << "given";
  EXPECT_EQ(recipe.beta2, 0.99);
  recipe.set("optimizer", "\"adamw\"");
  EXPECT_EQ(recipe.beta2, 0.999) << "the table's again";
  EXPECT_EQ(recipe.weight_decay, 0.2);
}

TEST(Recipe, GroupsAreReadAndWrittenAsJson) {
  Recipe recipe;
  recipe.merge(R"({"groups": [{"pattern": "*.bias", "weight_decay_scale": 0}]})");
  ASSERT_EQ(recipe.groups.all().size(), 1U);
  EXPECT_EQ(recipe.groups.of("a.bias").weight_decay_scale, 0);
  EXPECT_EQ(recipe.groups.of("a.weight").weight_decay_scale, 1);
  Recipe again;
  again.merge(recipe.json());
  EXPECT_EQ(again.json(), recipe.json());
}

TEST(Recipe, OptimizerKeysReachTheOptimizersOp) {
  const Plan plan = plan_training(build_gpt(odd_gpt()), {.beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.125, .weight_decay = 0.25}, kReference);
  int updates = 0;
  for (const Node& node : plan.program.find(Phase::update)->graph.nodes) {
    if (node.op != Op::adamw) continue;
    ++updates;
    EXPECT_EQ(node.attrs.real("beta1"), 0.5);
    EXPECT_EQ(node.attrs.real("beta2"), 0.75);
    EXPECT_EQ(node.attrs.real("epsilon"), 0.125);
    EXPECT_EQ(node.attrs.real("weight_decay"), 0.25);
  }
  EXPECT_GT(updates, 10);
}

// Issue 3's bound, with the kernels' own workspace.
TEST(Recipe, ATwelveLayerGptTakesAtMostSixtyPercentOfTheNoReuseSumOnBothBackends) {
  const Program model = build_gpt({.layers = 12, .width = 64, .heads = 4, .context = 64, .vocabulary = 256});
  for (const auto& backend : {make_reference_backend, make_cpu_backend}) {
    const MachineProfile machine = profile_of(*backend(nullptr), 2);
    const MemoryLayout m = plan_training(model, {.batch = 8}, kernel_needs(machine)).memory;
    const int64_t shared = m.of(Arena::activations) + m.of(Arena::stash) + m.of(Arena::workspace);
    EXPECT_LE(static_cast<double>(shared), 0.6 * static_cast<double>(m.no_reuse_bytes)) << machine.device;
  }
}

}  // namespace
}  // namespace st
