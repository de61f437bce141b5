// Devices that a plug-in brings to libscaletrain.so, and what is refused by name.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "small_run.h"

namespace {

using namespace st::test;
namespace fs = std::filesystem;

/// Sets an environment variable for its lifetime; null: unsets it.
class Set {
 public:
  Set(const char* name, const char* value) : name_(name) { value == nullptr ? unsetenv(name) : setenv(name, value, 1); }
  ~Set() { unsetenv(name_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* name_;
};

Set path_set(const std::string& path) { return {"SCALETRAIN_BACKEND_PATH", path.c_str()}; }

st_status opened(const char* device) {
  auto options = filled(st_context_options_init);
  options.device = device;
  options.threads = 1;
  HeldContext context;
  return st_context_create(&options, context.out());
}

std::string digest_after_training(const char* device, const std::string& recipe) {
  auto options = filled(st_context_options_init);
  options.device = device;
  options.threads = 2;
  const SmallRun run(text_file("train.txt", 2000), &options, recipe.c_str());
  EXPECT_TRUE(works(st_trainer_run(run.trainer, 4, nullptr, nullptr)));
  return run.digest();
}

std::string features() {
  const char* json = nullptr;
  EXPECT_TRUE(works(st_features(&json)));
  return json;
}

TEST(BackendPlugin, ARunHasTheBitsOfTheCpu) {
  const Set path = path_set(ST_APART);
  for (const char* keys : {"", R"(, "precision": "bf16", "clip": 0.1)", R"(, "optimizer": "muon", "recompute": "blocks")"}) {
    const auto recipe = [&](const std::string& device) {
      return R"({"batch": 3, "accumulate": 2, "warmup": 2, "dropout": 0.1, "device": ")" + device + "\"" + keys + "}";
    };
    const std::string wanted = digest_after_training("cpu", recipe("cpu"));
    EXPECT_EQ(digest_after_training("apart", recipe("apart")), wanted) << keys;
    EXPECT_EQ(digest_after_training("apart:1", recipe("apart:1")), wanted) << keys;
  }
}

TEST(BackendPlugin, IsFoundInAFolderToo) {
  {
    const Set none = path_set("");
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("apart"), {"unknown device \"apart\"; use cpu, reference or cuda"}));
    EXPECT_EQ(std::string(st_last_error()).find("SCALETRAIN_BACKEND_PATH"), std::string::npos);
  }
  const Set path = path_set(fs::path(ST_APART).parent_path());
  EXPECT_TRUE(works(opened("apart")));
  EXPECT_NE(features().find(R"({"name":"apart","available":true,"count":2,)"), std::string::npos);
  EXPECT_EQ(features().find(R"("name":"broken")"), std::string::npos) << "in a folder a device is found by its file's name";
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("broken"), {"unknown device \"broken\"", "/libscaletrain_broken.so"}));
}

TEST(BackendPlugin, AWrongPathIsNamed) {
  const Set path = path_set("build/elsewhere");
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("apart:1"),
                    {"unknown device \"apart:1\"", "SCALETRAIN_BACKEND_PATH is \"build/elsewhere\": there is no build/elsewhere",
                     "set it to the plug-in or to its folder; a relative path begins in the working folder"}));
  EXPECT_NE(features().find(R"({"name":"cuda","available":false,"count":0,"why":"there is no build/elsewhere, and there is no /)"),
            std::string::npos)
      << features();
  EXPECT_NE(features().find("/libscaletrain_cuda.so; install it there, or set SCALETRAIN_BACKEND_PATH to it or to its folder"),
            std::string::npos)
      << features();
}

TEST(BackendPlugin, AMissingDeviceSaysWhatWasLookedFor) {
  for (const char* where : {"", "/nowhere"}) {
    const Set path = path_set(where);
    EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("cuda"),
                      {"device cuda is not installed", where, "/libscaletrain_cuda.so", "there is no", "SCALETRAIN_BACKEND_PATH"}));
    EXPECT_EQ(std::string(st_last_error()).find('\n'), std::string::npos);
    EXPECT_NE(features().find("/libscaletrain_cuda.so"), std::string::npos);
  }
  const Set path = path_set(ST_APART);
  EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("cuda"), {"libscaletrain_apart.so has no device cuda", "libscaletrain_cuda.so"}));
  EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("cuda:1"), {"libscaletrain_cuda.so"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("apartt"), {"unknown device \"apartt\"", "cuda, apart, "}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("qqqqqqqq"), {"cpu, reference, cuda, apart", " or misnamed"}));
  EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("none"), {"this machine has no device none: its fan is missing"}));
  EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("asleep"), {"libscaletrain_apart.so", "the driver is asleep"}));
  EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("nothing"), {"device nothing", "libscaletrain_apart.so", "opened none"}));
  EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("misnamed"), {"device misnamed", "libscaletrain_apart.so", "opened apart"}));
}

TEST(BackendPlugin, AnIndexIsOneThatTheMachineHas) {
  const Set path = path_set(ST_APART);
  EXPECT_TRUE(works(opened("cpu:0")));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("cpu:1"), {"cpu:0", "cpu:1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("apart:2"), {"apart:0 to apart:1", "apart:2"}));
  for (const char* wrong : {"apart:", "apart:-1", "apart:1x", "apart:99999", "../apart", "APART", ":1", "apart 1"})
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened(wrong), {wrong}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("cpu:"), {"cpu:INDEX", "this machine has cpu:0"}));
  EXPECT_TRUE(fails(
      ST_INVALID_ARGUMENT, opened("apart:x"),
      {"apart or apart:INDEX, where INDEX is a whole number from 0 to 999999999, got \"apart:x\"", "this machine has apart:0 to apart:1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("apart:99999"), {"device must be apart:0 to apart:1, got \"apart:99999\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("gpu"), {"use cpu, reference, cuda, apart"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened(""), {"unknown device \"\"; use cpu, reference or cuda"}));
}

TEST(BackendPlugin, WhatIsWrongIsRefusedByName) {
  const struct {
    const char* kind;
    std::vector<const char*> words;
  } kWrong[] = {{"", {"no table"}},
                {"abi", {"interface 7", "interface 1", "install the plug-in of this library"}},
                {"build", {"build 0123456789abcdef", "this library of build "}},
                {"no_build", {"build unknown"}},
                {"no_devices", {"table of devices is null"}},
                {"none", {"has 0 rows"}},
                {"fewer", {"has -3 rows"}},
                {"many", {"has 1073741824 rows"}},
                {"nameless", {"invalid name"}},
                {"shouting", {"invalid name"}},
                {"long", {"invalid name"}},
                {"taken", {"names a device cpu", "built in"}},
                {"no_count", {"device strange lacks count"}},
                {"no_open", {"device strange lacks open"}},
                {"throws", {"nothing works today"}},
                {"throws_a_number", {"unknown kind"}}};
  const Set path = path_set(ST_STRANGE);
  for (const auto& [kind, words] : kWrong) {
    const Set strange("ST_STRANGE", kind);
    const std::string listed = features();
    for (const char* word : words) {
      EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("strange"), {"libscaletrain_strange.so: ", word})) << kind;
      EXPECT_NE(listed.find(word), std::string::npos) << kind << ": " << listed;
    }
    EXPECT_TRUE(works(opened("cpu"))) << "the others are there";
  }
}

TEST(BackendPlugin, AFileThatIsNoneIsRefusedByName) {
  const std::string text = file_of("libscaletrain_words.so", "These are words.\n"), empty = file_of("libscaletrain_empty.so", "");
  for (const std::string& file : {text, empty, std::string(ST_NO_BACKEND)}) {
    const Set path = path_set(file);
    EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("words"), {file + ": "}));
    EXPECT_NE(features().find(file + ": "), std::string::npos);
  }
  const Set path = path_set(ST_NO_BACKEND);
  EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("words"), {"no function st_backend_v1"}));
  const Set folder = path_set(fs::path(text).parent_path());
  EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("words"), {text}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, opened("other"), {"unknown device \"other\""}));
}

TEST(BackendPlugin, ItsErrorsKeepCodeMessageAndPlace) {
  const Set path = path_set(ST_APART);
  EXPECT_TRUE(fails(ST_IO, opened("broken:1"), {"broken: device 1 did not answer within the time"}));
  EXPECT_STREQ(last_error().file, "/dev/a_name_that_is_longer_than_a_short_text");
  EXPECT_TRUE(fails(ST_UNAVAILABLE, opened("odd"), {"libscaletrain_apart.so", "odd: no such place"}));
}

TEST(BackendPlugin, AnErrorOfAKernelNamesItsOp) {
  const Set path = path_set(ST_APART);
  auto options = filled(st_context_options_init);
  options.device = "apart";
  for (const int32_t threads : {1, 3}) {
    options.threads = threads;
    SmallRun run({}, &options, R"({"batch": 3, "device": "apart"})");
    TokenBatch batch(3, 5);
    batch.tokens[20] = 5000;
    const std::string before = run.digest();
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_step(run.trainer, 2, batch.views(), nullptr), {"token 5000", "[2, 4]", "0..255"}));
    EXPECT_STREQ(last_error().op, "embedding");
    EXPECT_EQ(run.digest(), before);
    batch.tokens[20] = 50;
    EXPECT_TRUE(works(st_trainer_step(run.trainer, 2, batch.views(), nullptr)));
  }
}

TEST(BackendPlugin, ItsMemoryIsTheContexts) {
  const Set path = path_set(ST_APART);
  auto options = filled(st_context_options_init);
  options.device = "apart";
  const auto context = hold<HeldContext>(st_context_create, &options);
  const auto model = hold<HeldModel>(st_model_builtin, context, "mlp", R"({"inputs": 64, "hidden": [], "outputs": 16})", 0);
  EXPECT_EQ(memory_of(context).allocated_bytes, 64 * 16 * 4 + 16 * 4);
}

TEST(BackendPlugin, DevicesAreListedWithTheirNumber) {
  const Set path = path_set(ST_APART);
  const std::string listed = features();
  for (const char* row :
       {R"({"name":"cpu","available":true,"count":1,"kernels":")", R"({"name":"reference","available":true,"count":1,)",
        R"({"name":"apart","available":true,"count":2,"kernels":")",
        R"({"name":"none","available":false,"count":0,"why":"its fan is missing)", R"({"name":"asleep","available":false,"count":0,)",
        R"({"name":"broken","available":false,"count":2,"why":"broken: device 0 did not answer)",
        R"(libscaletrain_apart.so has no device cuda, and there is no )"})
    EXPECT_NE(listed.find(row), std::string::npos) << row << " in " << listed;
}

TEST(BackendPlugin, APlanHasItsMemoryAndSaysThatItsRatesAreUnknown) {
  const Set path = path_set(ST_APART);
  auto options = filled(st_context_options_init);
  options.device = "apart";
  options.memory_limit = 1 << 20;
  const auto context = hold<HeldContext>(st_context_create, &options);
  const auto model = hold<HeldModel>(st_model_builtin, context, "mlp", R"({"inputs": 64, "hidden": [], "outputs": 16})", 0);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, "{}");
  HeldPlan plan;
  ASSERT_TRUE(works(st_plan_create(model, recipe, nullptr, plan.out())));
  const char* json = nullptr;
  ASSERT_TRUE(works(st_plan_json(plan, &json)));
  const std::string text = json;
  for (const char* part :
       {R"("machine":"apart")", "no rates of device apart are known", "plan for a100-40g", R"("device_memory":1048576,)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(BackendPlugin, KernelsWhoseNeedsAreUnknownMakeNoPlan) {
  const Set path = path_set(ST_APART);
  auto options = filled(st_context_options_init);
  options.device = "unknown";
  const auto context = hold<HeldContext>(st_context_create, &options);
  const auto model = hold<HeldModel>(st_model_builtin, context, "gpt", kSmallGpt, 1);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"device": "unknown"})");
  HeldTrainer trainer;
  EXPECT_TRUE(fails(ST_UNAVAILABLE, st_trainer_create(model, recipe, nullptr, trainer.out()), {"kernels of device \"unknown\""}));
}

}  // namespace
