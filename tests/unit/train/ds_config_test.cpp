// DeepSpeed's ds_config.json as a recipe. Expected values are from https://www.deepspeed.ai/docs/config-json and, for schedules, from the
// formulas of DeepSpeed's runtime/lr_schedules.py written out by hand.
#include "recipe/ds_config.h"
#include "refusal.h"

#include <cmath>
#include <numbers>

#include "recipe/recipe.h"
#include "recipe/schedule_choice.h"

namespace st {
namespace {

Recipe read(const std::string& json) {
  Recipe recipe;
  recipe.merge(json);
  return recipe;
}

using Words = std::initializer_list<std::string_view>;

testing::AssertionResult file_refused(Code code, const std::string& json, Words words) {
  Recipe recipe;
  const auto result = refuses(code, words, [&] { recipe.merge(json); });
  if (result && recipe.json() != Recipe{}.json()) return testing::AssertionFailure() << "a refused file changes something";
  return result;
}

testing::AssertionResult is_wrong(const std::string& json, Words words) { return file_refused(Code::invalid_argument, json, words); }

testing::AssertionResult is_not_here(const std::string& json, Words words) { return file_refused(Code::unsupported, json, words); }

constexpr const char* kIssue = R"({"train_batch_size": 256, "gradient_accumulation_steps": 16, "fp16": {"enabled": true},
  "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}})";

TEST(DsConfig, TheFileOfZeroThreeWithOffloadIsReadAsDeepSpeedReadsIt) {
  const Recipe recipe = read(kIssue);
  EXPECT_EQ(recipe.batch, 16);
  EXPECT_EQ(recipe.step_micro_batches(), 16);
  EXPECT_EQ(recipe.zero, 3);
  EXPECT_EQ(recipe.precision, "fp16");
  EXPECT_EQ(recipe.loss_scale, 0) << "dynamic";
  EXPECT_EQ(recipe.clip, 0) << "not given: off";
  EXPECT_EQ(recipe.optimizer, "adamw");
  ASSERT_EQ(recipe.notes.size(), 1U);
  EXPECT_EQ(recipe.offload, "parameters");
  EXPECT_EQ(recipe.offload_folder, "") << "host memory";
  EXPECT_TRUE(says(recipe.notes[0], {"stage 3", "several ranks"}));
}

TEST(DsConfig, IsKnownByItsKeysAndARecipeOfOursIsNot) {
  for (const char* json : {R"({"train_batch_size": 8})", R"({"zero_optimization": {}})", R"({"fp16": {}})", R"({"optimizer": {}})"})
    EXPECT_TRUE(is_ds_config(parse_json(json, "test"))) << json;
  for (const std::string& json : {std::string("{}"), std::string(R"({"optimizer": "lion"})"), std::string("[1]"), Recipe{}.json()})
    EXPECT_FALSE(is_ds_config(parse_json(json, "test"))) << json;
}

TEST(DsConfig, ASlipInAFileThatHasNoOtherKeyOfIt) {
  EXPECT_TRUE(is_wrong(R"({"train_batch_sise": 256})", {"did you mean \"train_batch_size\" of a ds_config?"}));
}

TEST(DsConfig, TwoOfTheThreeBatchSizesGiveTheThird) {
  struct Case {
    const char* json;
    int64_t batch, accumulate;
  };
  for (const Case& one : {Case{R"({"train_batch_size": 12})", 12, 1},
                          {R"({"train_micro_batch_size_per_gpu": 3})", 3, 1},
                          {R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 3})", 3, 4},
                          {R"({"train_batch_size": 12, "gradient_accumulation_steps": 4})", 3, 4},
                          {R"({"train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4})", 3, 4},
                          {R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4})", 3, 4},
                          {R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": "auto"})", 3, 4},
                          {R"({"train_batch_size": "auto", "gradient_accumulation_steps": 4})", 8, 4}}) {
    const Recipe recipe = read(one.json);
    EXPECT_EQ(recipe.batch, one.batch) << one.json;
    EXPECT_EQ(recipe.step_micro_batches(), one.accumulate) << one.json;
  }
}

TEST(DsConfig, TheTotalIsThatOfAnyNumberOfRanksAndStepsWithoutItAreOfEach) {
  const auto rows = [](const char* json, int64_t ranks) {
    Recipe recipe = read(json);
    recipe.ranks = ranks;
    return recipe.batch * recipe.step_micro_batches();
  };
  for (const int64_t ranks : {1, 2, 4}) {
    EXPECT_EQ(rows(R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 3})", ranks), 24);
    EXPECT_EQ(rows(R"({"train_batch_size": 24, "gradient_accumulation_steps": 4})", ranks), 24);
    EXPECT_EQ(rows(R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4})", ranks), 24);
    EXPECT_EQ(rows(R"({"train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4})", ranks), 12 * ranks);
  }
  const Recipe of_two = read(R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4})");
  ASSERT_EQ(of_two.notes.size(), 1U);
  EXPECT_TRUE(says(of_two.notes[0], {"x 2 ranks"}));
}

TEST(DsConfig, BatchSizesThatContradictEachOtherAreRefusedWithTheArithmetic) {
  EXPECT_TRUE(
      is_wrong(R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4})",
               {"train_batch_size 10", "train_micro_batch_size_per_gpu 3 x gradient_accumulation_steps 4 x ranks, a multiple of 12"}));
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 250, "gradient_accumulation_steps": 16})", {"250 / 16 = 15.625"}));
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 9, "train_micro_batch_size_per_gpu": 2})", {"9 / 2 = 4.5"}));
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 0})", {"train_batch_size must be a whole number", "got 0"}));
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 2.5})", {"train_batch_size must be a whole number", "got 2.5"}));
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": true})", {"train_batch_size must be a number", "true"}));
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 9, "train_micro_batch_size_per_gpu": 1e12, "gradient_accumulation_steps": 1e12})",
                       {"a multiple of 1e+24"}));
}

TEST(DsConfig, OptimizersTakeDeepSpeedsMeaningsAndDefaults) {
  struct Case {
    const char *json, *optimizer;
    double lr, weight_decay;
  };
  for (const Case& one : {Case{R"({"type": "Adam"})", "adamw", 1e-3, 0},
                          {R"({"type": "AdamW", "params": {"lr": 2e-3, "weight_decay": 0.1}})", "adamw", 2e-3, 0.1},
                          {R"({"type": "Adam", "params": {"adam_w_mode": false}})", "adam", 1e-3, 0},
                          {R"({"type": "AdamW", "params": {"adam_w_mode": false}})", "adamw", 1e-3, 0},
                          {R"({"type": "Adam", "params": {"torch_adam": true}})", "adamw", 1e-3, 0.01},
                          {R"({"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto", "betas": "auto"}})", "adamw", 1e-3, 0.01},
                          {R"({"type": "Lion"})", "lion", 1e-4, 0},
                          {R"({"type": "Adagrad"})", "adagrad", 1e-2, 0},
                          {R"({"type": "SGD", "params": {"lr": 1}})", "sgd", 1, 0},
                          {R"({"type": "RMSprop"})", "rmsprop", 1e-2, 0},
                          {R"({"type": "Muon", "params": {"lr": 0.02}})", "muon", 0.02, 0}}) {
    const Recipe recipe = read(text("{\"optimizer\": ", one.json, "}"));
    EXPECT_EQ(recipe.optimizer, one.optimizer) << one.json;
    EXPECT_EQ(recipe.lr, one.lr) << one.json;
    EXPECT_EQ(recipe.weight_decay, one.weight_decay) << one.json;
    EXPECT_EQ(recipe.warmup, 0) << "without a scheduler the rate is constant";
  }
}

TEST(DsConfig, EveryParamOfAnOptimizerReachesItsKey) {
  const Recipe adam = read(R"({"optimizer": {"type": "adam", "params": {"betas": [0.8, 0.95], "eps": 1e-6}}})");
  EXPECT_EQ(adam.beta1, 0.8);
  EXPECT_EQ(adam.beta2, 0.95);
  EXPECT_EQ(adam.epsilon, 1e-6);
  const Recipe sgd = read(R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.9, "dampening": 0.1, "nesterov": true}}})");
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_EQ(sgd.dampening, 0.1);
  EXPECT_TRUE(sgd.nesterov);
  const Recipe adagrad = read(R"({"optimizer": {"type": "Adagrad", "params": {"lr_decay": 0.5, "initial_accumulator_value": 2}}})");
  EXPECT_EQ(adagrad.rate_decay, 0.5);
  EXPECT_EQ(adagrad.initial_accumulator_value, 2);
  const Recipe rmsprop = read(R"({"optimizer": {"type": "RMSprop", "params": {"alpha": 0.75, "centered": true}}})");
  EXPECT_EQ(rmsprop.beta2, 0.75);
  EXPECT_TRUE(rmsprop.centered);
  const Recipe muon = read(R"({"optimizer": {"type": "Muon", "params": {"ns_steps": 6}}})");
  EXPECT_EQ(muon.ns_steps, 6);
  EXPECT_EQ(muon.beta2, 0.95) << "of the AdamW beside it";
}

TEST(DsConfig, OptimizersThatAreNotHereNameWhatToUse) {
  for (const char* type : {"OneBitAdam", "ZeroOneAdam", "MuAdam"})
    EXPECT_TRUE(is_not_here(text(R"({"optimizer": {"type": ")", type, R"("}})"), {type, "use Adam,"}));
  for (const char* type : {"Lamb", "OneBitLamb"})
    EXPECT_TRUE(is_not_here(text(R"({"optimizer": {"type": ")", type, R"("}})"), {type, "use AdamW,"}));
  EXPECT_TRUE(is_wrong(R"({"optimizer": {"type": "AdmaW"}})", {"\"AdmaW\" is unknown", "did you mean \"adam"}));
  EXPECT_TRUE(is_wrong(R"({"optimizer": {"params": {}}})", {"optimizer.type is missing"}));
  EXPECT_TRUE(is_wrong(R"({"optimizer": {"type": "Adam", "params": {"beta": 0.9}}})", {"optimizer.params.beta", "optimizer.params.betas"}));
  EXPECT_TRUE(is_wrong(R"({"optimizer": {"type": "Adam", "params": {"betas": [0.9]}}})", {"list of two numbers", "[0.9]"}));
  EXPECT_TRUE(is_wrong(R"({"optimizer": {"type": "Adam", "params": {"betas": [0.9, 1]}}})", {"[0.9,1]"}));
  EXPECT_TRUE(is_wrong(R"({"optimizer": {"type": "Adam", "params": {"lr": -1}}})", {"optimizer.params.lr must be at least 0, got -1"}));
  EXPECT_TRUE(is_not_here(R"({"optimizer": {"type": "Adam", "params": {"amsgrad": true}}})", {"amsgrad"}));
}

// The optimizer's step k uses the scheduler's value after k - 1 scheduler steps; tolerance: one rounding of a product.
TEST(DsConfig, SchedulersGiveTheLearningRateOfEachStepThatDeepSpeeds) {
  const LrSchedule log = schedule_choice(read(R"({"scheduler": {"type": "WarmupLR", "params":
    {"warmup_min_lr": 0.5, "warmup_max_lr": 1, "warmup_num_steps": 8}}})"));
  EXPECT_EQ(log.at(0), 0.5);
  for (int64_t k = 1; k <= 8; ++k) EXPECT_NEAR(log.at(k), 0.5 + 0.5 * std::log(static_cast<double>(k)) / std::log(8.0), 1e-15) << k;
  for (const int64_t k : {9, 10, 1000}) EXPECT_EQ(log.at(k), 1) << k;

  const LrSchedule linear = schedule_choice(read(R"({"optimizer": {"type": "Adam", "params": {"lr": 4}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 4, "warmup_type": "linear"}}})"));
  const double rises[] = {0, 0, 1, 2, 3, 4, 4};
  for (int64_t k = 0; k < 7; ++k) EXPECT_EQ(linear.at(k), rises[k]) << k;

  const LrSchedule decay = schedule_choice(read(R"({"scheduler": {"type": "WarmupDecayLR", "params":
    {"warmup_max_lr": 4, "warmup_num_steps": 2, "warmup_type": "linear", "total_num_steps": 6}}})"));
  const double falls[] = {0, 0, 2, 4, 3, 2, 1, 0, 0};
  for (int64_t k = 0; k < 9; ++k) EXPECT_EQ(decay.at(k), falls[k]) << k;

  const LrSchedule cosine = schedule_choice(read(R"({"optimizer": {"type": "Adam", "params": {"lr": 2}}, "scheduler": {"type":
    "WarmupCosineLR", "params": {"warmup_min_ratio": 0.5, "warmup_num_steps": 2, "warmup_type": "linear", "cos_min_ratio": 0.25,
    "total_num_steps": 6}}})"));
  EXPECT_EQ(cosine.at(0), 0);
  EXPECT_EQ(cosine.at(1), 1);
  EXPECT_EQ(cosine.at(2), 1.5);
  for (int64_t k = 3; k <= 6; ++k)
    EXPECT_NEAR(cosine.at(k), 2 * (0.25 + 0.75 * (1 + std::cos(std::numbers::pi * static_cast<double>(k - 2) / 4)) / 2), 1e-15) << k;
  for (const int64_t k : {7, 100}) EXPECT_NEAR(cosine.at(k), 0.5, 1e-15) << k;
}

TEST(DsConfig, SchedulersWithAutoInThemAreOursOverTheRun) {
  const Recipe decay = read(R"({"optimizer": {"type": "AdamW", "params": {"lr": 0.5}}, "scheduler": {"type": "WarmupDecayLR", "params":
    {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": 7, "total_num_steps": "auto"}}})");
  EXPECT_EQ(decay.lr_schedule, "linear");
  EXPECT_EQ(decay.lr, 0.5);
  EXPECT_EQ(decay.warmup, 7);
  EXPECT_EQ(decay.lr_steps, 0) << "the command line's --steps";
  ASSERT_EQ(decay.notes.size(), 1U);
  EXPECT_TRUE(says(decay.notes[0], {"lr_schedule linear"}));
  const Recipe warm_up = read(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.25, "warmup_num_steps": "auto"}}})");
  EXPECT_EQ(warm_up.lr_schedule, "constant");
  EXPECT_EQ(warm_up.lr, 0.25);
  EXPECT_EQ(warm_up.warmup, Recipe{}.warmup);
}

TEST(DsConfig, SchedulersThatAreNotHereNameWhatToUse) {
  EXPECT_TRUE(is_not_here(R"({"scheduler": {"type": "OneCycle"}})", {"lr_schedule one_cycle"}));
  EXPECT_TRUE(is_not_here(R"({"scheduler": {"type": "LRRangeTest"}})", {"lr_schedule table"}));
  EXPECT_TRUE(is_wrong(R"({"scheduler": {"type": "WarmUpLR"}})", {"\"WarmUpLR\" is unknown", "WarmupLR"}));
  EXPECT_TRUE(is_wrong(R"({"scheduler": {}})", {"scheduler.type is missing"}));
  EXPECT_TRUE(is_wrong(R"({"scheduler": {"type": "WarmupDecayLR", "params": {}}})", {"needs scheduler.params.total_num_steps"}));
  EXPECT_TRUE(is_wrong(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 10}}})", {"10", "warmup_num_steps 1000"}));
  EXPECT_TRUE(is_wrong(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_step": 10}}})", {"did you mean", "warmup_num_steps"}));
  EXPECT_TRUE(is_wrong(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cubic"}}})", {"\"cubic\"", "log or linear"}));
  EXPECT_TRUE(is_wrong(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 1}}})", {"warmup_min_lr 1", "0.001"}));
  EXPECT_TRUE(is_not_here(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 1e6}}})", {"1000000", "100000"}));
}

TEST(DsConfig, Fp16TakesDeepSpeedsLossScale) {
  LossScale options = read(R"({"fp16": {"enabled": true}})").loss_scaler()->options();
  EXPECT_TRUE(options.dynamic);
  EXPECT_EQ(options.scale, 65536) << "2^16";
  EXPECT_EQ(options.growth_interval, 1000);
  EXPECT_EQ(options.hysteresis, 2);
  EXPECT_EQ(options.minimum, 1);
  options = read(R"({"fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 12, "loss_scale_window": 7, "hysteresis": 3,
                     "consecutive_hysteresis": true, "min_loss_scale": 4}})")
                .loss_scaler()
                ->options();
  EXPECT_TRUE(options.dynamic);
  EXPECT_EQ(options.scale, 4096);
  EXPECT_EQ(options.growth_interval, 7);
  EXPECT_EQ(options.hysteresis, 3);
  EXPECT_TRUE(options.consecutive_hysteresis);
  EXPECT_EQ(options.minimum, 4);
  options = read(R"({"fp16": {"enabled": true, "loss_scale": 128}})").loss_scaler()->options();
  EXPECT_FALSE(options.dynamic);
  EXPECT_EQ(options.scale, 128);
  for (const char* json : {R"({"fp16": {"enabled": false, "hysteresis": 2}})", R"({"fp16": {"enabled": "auto"}})", R"({"fp16": {}})"})
    EXPECT_EQ(read(json).precision, "fp32") << json;
}

TEST(DsConfig, Bf16IsOurs) {
  EXPECT_EQ(read(R"({"bf16": {"enabled": true}})").precision, "bf16");
  EXPECT_EQ(read(R"({"bfloat16": {"enabled": true}})").precision, "bf16");
  EXPECT_TRUE(is_wrong(R"({"bf16": {"enabled": true}, "fp16": {"enabled": true}})", {"fp16.enabled and bf16.enabled are both true"}));
  EXPECT_TRUE(is_wrong(R"({"bf16": {}, "bfloat16": {}})", {"the same section"}));
}

TEST(DsConfig, PrecisionsThatAreWrongAreRefused) {
  EXPECT_TRUE(is_wrong(R"({"fp16": {"enabled": 1}})", {"fp16.enabled must be true or false, got 1"}));
  EXPECT_TRUE(is_wrong(R"({"fp16": true})", {}));
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 1, "fp16": true})", {"fp16 must be an object", "true"}));
  EXPECT_TRUE(is_wrong(R"({"fp16": {"loss_scale": -1}})", {"fp16.loss_scale must be at least 0, got -1"}));
  EXPECT_TRUE(is_wrong(R"({"fp16": {"initial_scale_power": 127}})", {"fp16.initial_scale_power must be", "126, got 127"}));
  EXPECT_TRUE(is_wrong(R"({"fp16": {"hysteresis": 0}})", {"fp16.hysteresis must be", "got 0"}));
  EXPECT_TRUE(
      is_wrong(R"({"fp16": {"enabled": true, "initial_scale_power": 3, "min_loss_scale": 16}})", {"initial_scale_power 3", "8", "16"}));
  EXPECT_TRUE(is_wrong(R"({"fp16": {"loss_scale_windw": 7}})", {"\"fp16.loss_scale_windw\"", "did you mean \"fp16.loss_scale_window\"?"}));
  EXPECT_TRUE(is_not_here(R"({"fp16": {"fp16_master_weights_and_grads": true}})", {"fp32"}));
}

TEST(DsConfig, CommunicationDataTypeIsThatOfGradients) {
  const auto dtype = [](const char* theirs) {
    return read(text(R"({"train_batch_size": 1, "communication_data_type": )", theirs, "}")).gradient_dtype;
  };
  EXPECT_EQ(dtype("\"bf16\""), "bf16");
  EXPECT_EQ(dtype("\"bfp16\""), "bf16");
  EXPECT_EQ(dtype("\"FP16\""), "fp16");
  for (const char* none : {"\"fp32\"", "null", "\"auto\""}) EXPECT_EQ(dtype(none), "fp32") << none;
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 1, "communication_data_type": "int8"})", {"fp32, bf16 or fp16", "got \"int8\""}));
}

TEST(DsConfig, GradAccumDtypeIsThatOfSumsAndOfWhatIsSentUnlessItIsSaid) {
  const auto dtypes = [](const char* theirs) {
    const Recipe recipe = read(text(R"({"train_batch_size": 1, )", theirs, "}"));
    return recipe.gradient_dtype + " " + recipe.accumulate_dtype;
  };
  EXPECT_EQ(dtypes(R"("data_types": {"grad_accum_dtype": "bf16"})"), "bf16 bf16");
  EXPECT_EQ(dtypes(R"("data_types": {"grad_accum_dtype": "fp32"})"), "fp32 fp32");
  EXPECT_EQ(dtypes(R"("data_types": {"grad_accum_dtype": null}, "communication_data_type": "fp16")"), "fp16 fp32");
  EXPECT_EQ(dtypes(R"("data_types": {"grad_accum_dtype": "fp32"}, "communication_data_type": "bf16")"), "bf16 fp32");
  EXPECT_EQ(dtypes(R"("data_types": {"grad_accum_dtype": "fp16"}, "communication_data_type": "fp16")"), "fp16 fp16");
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 1, "data_types": {"grad_accum_dtype": "bf16"}, "communication_data_type": "fp32"})",
                       {"data_types.grad_accum_dtype must be fp32 or that of communication_data_type, fp32, got bf16", "leave one"}));
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 1, "data_types": {"grad_accum_dtype": "int8"}})", {"fp32, bf16 or fp16", "got \"int8\""}));
}

TEST(DsConfig, ClipsAsItSaysAndNotAtAllWhereItIsSilent) {
  EXPECT_EQ(read(R"({"gradient_clipping": 0.5})").clip, 0.5);
  EXPECT_EQ(read(R"({"gradient_clipping": 0})").clip, 0);
  EXPECT_EQ(read(R"({"steps_per_print": 10})").clip, 0);
  EXPECT_EQ(read(R"({"gradient_clipping": "auto"})").clip, 1) << "our default";
  EXPECT_TRUE(is_wrong(R"({"gradient_clipping": -1})", {"gradient_clipping must be at least 0, got -1"}));
}

TEST(DsConfig, OffloadGoesToTheFolderOfAnNvmeAndParametersTakeTheOptimizerWithThem) {
  const auto offload = [](const std::string& sections) {
    const Recipe recipe = read(R"({"zero_optimization": {"stage": 3, )" + sections + "}}");
    return recipe.offload + " " + recipe.offload_folder;
  };
  const std::string optimizer = R"("offload_optimizer": {"device": "nvme", "nvme_path": "/x"})",
                    cpu = R"("offload_optimizer": {"device": "cpu"})";
  EXPECT_EQ(offload(R"("offload_param": {"device": "none"})"), "none ");
  EXPECT_EQ(offload(cpu), "optimizer ");
  EXPECT_EQ(offload(R"("cpu_offload_params": true)"), "parameters ");
  EXPECT_EQ(offload(optimizer), "optimizer /x");
  EXPECT_EQ(offload(optimizer + R"(, "offload_param": {"device": "cpu"})"), "optimizer /x") << "parameters in memory, which they are in";
  EXPECT_EQ(offload(optimizer + R"(, "offload_param": {"device": "nvme", "nvme_path": "/x"})"), "parameters /x");
  EXPECT_EQ(offload(cpu + R"(, "offload_param": {"device": "nvme", "nvme_path": "/y"})"), "parameters /y");
  EXPECT_TRUE(
      is_wrong(R"({"zero_optimization": {"stage": 3, )" + optimizer + R"(, "offload_param": {"device": "nvme", "nvme_path": "/y"}}})",
               {"/x", "/y", "the same folder"}));
}

TEST(DsConfig, ZeroIsAcceptedWhereItIsRightAndSaysWhatItNeedsWhereItIsNot) {
  const Recipe recipe = read(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8, "overlap_comm": true,
    "allgather_bucket_size": "auto", "offload_optimizer": {"device": "nvme", "nvme_path": "/x", "pin_memory": true}}})");
  ASSERT_EQ(recipe.notes.size(), 1U);
  EXPECT_TRUE(says(recipe.notes[0], {"(stage 2, reduce_bucket_size, overlap_comm)"}));
  EXPECT_EQ(recipe.offload, "optimizer");
  EXPECT_EQ(recipe.offload_folder, "/x");
  EXPECT_TRUE(read(R"({"zero_optimization": {"stage": 0}})").notes.empty());
  EXPECT_TRUE(is_wrong(R"({"zero_optimization": {"stage": 4}})", {"zero_optimization.stage must be", "0 to 3, got 4"}));
  EXPECT_TRUE(
      is_wrong(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})", {"needs zero_optimization.stage 3", "got 2"}));
  EXPECT_TRUE(is_wrong(R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})", {"stage 1 or more", "got 0"}));
  EXPECT_TRUE(is_wrong(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "disk"}}})", {"\"disk\"", "none, cpu or nvme"}));
  EXPECT_TRUE(is_wrong(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})", {"nvme_path is missing"}));
  EXPECT_TRUE(is_wrong(R"({"zero_optimization": {"stages": 3}})", {"did you mean \"zero_optimization.stage\"?"}));
  EXPECT_TRUE(is_wrong(R"({"zero_optimization": 3})", {"zero_optimization must be an object", "3"}));
  EXPECT_TRUE(is_not_here(R"({"zero_optimization": {"stage": 3, "zero_quantized_weights": true}})", {"zero_quantized_weights"}));
}

TEST(DsConfig, ActivationCheckpointingRecomputesBlocks) {
  EXPECT_EQ(read(R"({"activation_checkpointing": {"partition_activations": true}})").recompute, "blocks");
  EXPECT_EQ(read(R"({"activation_checkpointing": {"number_checkpoints": 4}})").recompute, "blocks");
  EXPECT_EQ(read(R"({"activation_checkpointing": {"partition_activations": false, "number_checkpoints": null}})").recompute, "none");
}

TEST(DsConfig, WhatMeansNothingHereIsListedInOneLine) {
  const Recipe recipe =
      read(R"({"steps_per_print": 10, "wall_clock_breakdown": false, "fp16": {"auto_cast": false}, "amp": {"enabled": false},
    "zero_allow_untested_optimizer": true, "activation_checkpointing": {"profile": true}})");
  ASSERT_EQ(recipe.notes.size(), 1U);
  EXPECT_EQ(recipe.notes[0],
            "keys without effect here: fp16.auto_cast, activation_checkpointing.profile, amp, steps_per_print, wall_clock_breakdown, "
            "zero_allow_untested_optimizer");
}

TEST(DsConfig, MethodsThatTrainOtherwiseAreNotHere) {
  for (const char* key : {"amp", "torch_autocast", "sparse_attention", "progressive_layer_drop", "curriculum_learning", "elasticity"})
    EXPECT_TRUE(is_not_here(text(R"({"train_batch_size": 1, ")", key, R"(": {"enabled": true}})"), {key, "leave it out"}));
}

TEST(DsConfig, AMisspeltKeyNamesTheNearest) {
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 1, "gradient_cliping": 1})", {"did you mean \"gradient_clipping\"?"}));
  EXPECT_TRUE(is_wrong(R"({"train_batch_size": 1, "groups": []})", {"\"groups\"", "cannot hold recipe keys"}));
}

TEST(DsConfig, OptionsBesideItBeatIt) {
  Recipe recipe = read(kIssue);
  recipe.set("batch", "2");
  recipe.set("precision", "\"bf16\"");
  EXPECT_EQ(recipe.batch, 2);
  EXPECT_EQ(recipe.precision, "bf16");
}

}  // namespace
}  // namespace st
