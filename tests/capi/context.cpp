// A context: the device, the host's threads and log, and a memory limit that is enforced before memory is touched.
#include <chrono>
#include <thread>

#include "sine_rows.h"

namespace {

using namespace st::test;

TEST(Context, UnknownDevicesAreRefused) {
  auto options = filled(st_context_options_init);
  HeldContext context;
  options.device = "gpu0";
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_context_create(&options, context.out()), {"gpu0", "cpu"}));
  options.device = "refrence";
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_context_create(&options, context.out()), {"reference"}));
  options.device = nullptr;  // the default
  EXPECT_TRUE(works(st_context_create(&options, context.out())));
}

TEST(Context, NumbersThatCannotBeAreRefused) {
  auto options = filled(st_context_options_init);
  HeldContext context;
  for (const int32_t threads : {-1, 1 << 30}) {
    options.threads = threads;
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_context_create(&options, context.out()), {"threads", std::to_string(threads)}));
  }
  options.threads = 1;
  options.memory_limit = -1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_context_create(&options, context.out()), {"memory_limit", "-1"}));
}

TEST(Context, TheHostsLogGetsOneCallARecord) {
  struct Record {
    int32_t level;
    std::string area, text;
  };
  std::vector<Record> records;
  auto options = filled(st_context_options_init);
  options.log = [](void* user, int32_t level, const char* area, const char* text) {
    static_cast<std::vector<Record>*>(user)->push_back({level, area, text});
  };
  options.log_user = &records;
  const SmallRun run({}, &options);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].level, ST_LOG_INFO);
  EXPECT_EQ(records[0].area, "trainer");
  EXPECT_NE(records[0].text.find("instructions"), std::string::npos) << records[0].text;
}

TEST(Context, ASkippedStepIsOneWarningOnWhicheverThread) {
  struct Records {
    std::vector<std::string> warnings;
    std::thread::id thread;
  } records;
  auto options = filled(st_context_options_init);
  options.log = [](void* user, int32_t level, const char* area, const char* text) {
    auto& r = *static_cast<Records*>(user);
    if (level != ST_LOG_WARNING) return;
    r.warnings.push_back(std::string(area) + ": " + text);
    r.thread = std::this_thread::get_id();
  };
  options.log_user = &records;
  const auto context = hold<HeldContext>(st_context_create, &options);
  SineTrainer run(context, nullptr);
  const int64_t dims[] = {8, 1};
  std::vector<float> x(8, 1), far(8, 3e38F);
  const st_named_view batch[] = {{"x", {ST_F32, 2, dims, nullptr, x.data(), 32}}, {"y", {ST_F32, 2, dims, nullptr, far.data(), 32}}};
  auto report = filled(st_step_report_init);
  const auto step = [&] { ASSERT_TRUE(works(st_trainer_step(run.trainer, 2, batch, &report))); };
  step();
  EXPECT_EQ(report.skipped, 1);
  EXPECT_EQ(records.warnings, std::vector<std::string>{"trainer: step 1 was skipped: its gradient is not finite"});
  std::thread other(step);
  const auto there = other.get_id();
  other.join();
  ASSERT_EQ(records.warnings.size(), 2U);
  EXPECT_EQ(records.warnings[1], "trainer: step 2 was skipped: its gradient is not finite");
  EXPECT_EQ(records.thread, there);
}

/// Checks that a call returned quickly and took no notable memory.
class Untouched {
 public:
  explicit Untouched(st_context* context) : context_(context), resident_(resident()), start_(std::chrono::steady_clock::now()) {}
  ~Untouched() {
    EXPECT_LT(resident() - resident_, int64_t{64} << 20);
    EXPECT_LT(std::chrono::steady_clock::now() - start_, std::chrono::seconds(20));  // for very busy machines; touching 19 TB takes hours
  }

 private:
  int64_t resident() const { return memory_of(context_).resident_bytes; }
  st_context* context_;
  int64_t resident_;
  std::chrono::steady_clock::time_point start_;
};

TEST(Memory, AModelThatDoesNotFitSaysWhatItNeedsAndTouchesNothing) {
  HeldModel model;
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const Untouched nothing(context);
  const char* json = R"({"layers": 96, "width": 65536, "heads": 64, "context": 2048})";
  // 12 width^2 + 13 width per layer, two embeddings and the last norm; 4 bytes each.
  const int64_t width = 65536, elements = 96 * (12 * width * width + 13 * width) + (256 + 2048) * width + 2 * width;
  EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, st_model_builtin(context, "gpt", json, 0, model.out()),
                    {"needs", std::to_string(4 * elements) + " bytes", "is available; use a smaller model, or divide it: ",
                     "stages, tensor or zero 3", "The largest parameter is block.0.mlp.expand.weight, 64.00 GiB"}));
}

TEST(Memory, AGraphTooLargeToCountIsRefused) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto graph = hold<HeldGraph>(st_graph_create, context);
  const int64_t dims[] = {int64_t{1} << 24, int64_t{1} << 24};
  st_value value = 0;
  st_status status = ST_OK;
  for (int i = 0; i < 40 && status == ST_OK; ++i)
    status = st_graph_parameter(graph, ("w" + std::to_string(i)).c_str(), 2, dims, ST_INIT_ZEROS, 1, &value);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, status, {"st_graph_parameter", "elements"}));
}

TEST(Memory, ALimitIsKeptByModelsAndTrainers) {
  auto options = filled(st_context_options_init);
  options.memory_limit = 200000;
  const auto context = hold<HeldContext>(st_context_create, &options);
  const auto allocated = [&] {
    const auto stats = memory_of(context);
    EXPECT_LE(stats.available_bytes, options.memory_limit - stats.allocated_bytes);
    return stats.allocated_bytes;
  };
  HeldModel model, second;
  HeldTrainer trainer;
  // 150 x 200 weights take 120,000 bytes: the model fits; its gradient and moments do not, nor does a second model.
  const char* json = R"({"inputs": 150, "hidden": [], "outputs": 200})";
  ASSERT_TRUE(works(st_model_builtin(context, "mlp", json, 0, model.out())));
  const int64_t before = allocated();
  EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, st_model_builtin(context, "mlp", json, 0, second.out()), {"memory_limit", "needs"}));
  const auto recipe = hold<HeldRecipe>(st_recipe_create, nullptr);
  EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, st_trainer_create(model, recipe, nullptr, trainer.out()), {"trainer", "needs", "memory_limit"}));
  EXPECT_EQ(allocated(), before);
}

TEST(Memory, AStepTooLargeToCountIsAnError) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto model = hold<HeldModel>(st_model_builtin, context, "gpt", kSmallGpt, 0);
  for (const char* key : {"batch", "accumulate", "micro_batches"})
    for (const char* number : {"1000000000000", "4000000000000000", "9223372036854775807"}) {
      HeldTrainer trainer;
      const auto recipe = hold<HeldRecipe>(st_recipe_create, nullptr);
      ASSERT_TRUE(works(st_recipe_set(recipe, key, number)));
      const Untouched nothing(context);
      EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, st_trainer_create(model, recipe, nullptr, trainer.out()), {"needs", "is available"}))
          << key << " " << number;
    }
}

TEST(Context, GivesItsDeviceToARecipeWithoutOneAndRefusesAnother) {
  auto options = filled(st_context_options_init);
  options.device = "reference";
  HeldTrainer trainer;
  const auto context = hold<HeldContext>(st_context_create, &options);
  const auto model = hold<HeldModel>(st_model_builtin, context, "mlp", nullptr, 0);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"device": "cpu"})");
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_create(model, recipe, nullptr, trainer.out()),
                    {"the recipe has device cpu", "context has reference", "leave the recipe's device out"}));
  const auto open = hold<HeldRecipe>(st_recipe_create, nullptr);
  ASSERT_TRUE(works(st_trainer_create(model, open, nullptr, trainer.out())));
  EXPECT_EQ(text_of(st_recipe_get, open, "device"), "\"auto\"") << "it stays open for other contexts";
}

}  // namespace
