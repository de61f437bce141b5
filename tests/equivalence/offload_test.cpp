// Training with state in a file is bitwise equal to training in memory (traps.md, T9), and takes no memory for it.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <numeric>
#include <thread>

#include "base/os/files.h"
#include "models/mlp.h"
#include "rank_group.h"
#include "rank_training.h"
#include "sanitized.h"
#include "saved_trainer.h"

// Replaces the C library's fsync: no power is lost in this test.
extern "C" int fsync(int) { return 0; }

namespace st {
namespace {

const char* const kPlaces[] = {"optimizer", "parameters", "gradients"};

Training offloaded(const Case& c, int64_t ranks, int64_t zero, const std::string& what, const std::string& folder) {
  Training made = training_of(c, ranks);
  made.recipe.zero = zero;
  made.recipe.offload = what;
  made.recipe.offload_folder = folder;
  return made;
}

class Offload : public testing::TestWithParam<Case> {
 protected:
  const ScratchFolder scratch_{"offload_test"};
  const std::string folder_ = scratch_ / ".";
};

TEST_P(Offload, LeavesTheBitsOfWhatIsResident) {
  const Outcome resident = outcome_of(*training_of(GetParam(), 1).trainer());
  expect_skips_and_updates(GetParam(), resident);
  for (const char* what : kPlaces) {
    EXPECT_EQ(outcome_of(*offloaded(GetParam(), 1, 0, what, folder_).trainer()), resident) << what;
    EXPECT_EQ(outcome_of(*offloaded(GetParam(), 1, 0, what, "").trainer()), resident) << what << ", to host memory, where this device is";
    for (const int64_t zero : {0, 1, 2, 3})
      EXPECT_EQ(outcome_of(*offloaded(GetParam(), 2, zero, what, folder_).trainer()), resident) << what << ", zero " << zero;
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, Offload,
                         testing::Values(Case{.name = "fp32", .keys = {}}, Case{.name = "bf16", .keys = {{"precision", "\"bf16\""}}},
                                         Case{.name = "eight_bits", .keys = {{"optimizer", "\"adamw-8bit\""}}, .width = kCodedWidth},
                                         Case{.name = "average",
                                              .keys = {{"precision", "\"fp16\""}, {"loss_scale_initial", "8388608"}, {"ema_decay", "0.9"}}},
                                         Case{.name = "recompute", .keys = {{"recompute", "\"auto\""}, {"optimizer", "\"muon\""}}}),
                         [](const testing::TestParamInfo<Case>& its) { return its.param.name; });

TEST_F(Offload, GoesOnWithACheckpointOfWhatIsResidentAndTheOtherWayRound) {
  const Case c{.name = "", .keys = {}};
  const Outcome whole = outcome_of(*training_of(c, 1).trainer());
  for (const bool first : {true, false}) {
    const auto of = [&](bool in_file) {
      return in_file ? offloaded(c, 2, 1, "parameters", folder_).trainer() : training_of(c, 1).trainer();
    };
    const auto trainer = of(first);
    Outcome all = outcome_of(*trainer, 2);
    const std::string saved = scratch_ / (first ? "of_file" : "of_memory");
    save(*trainer, saved);
    const auto resumed = of(!first);
    resume_from(saved, *resumed);
    const Outcome after = outcome_of(*resumed, 2);
    all.told.insert(all.told.end(), after.told.begin(), after.told.end());
    all.state = after.state;
    EXPECT_EQ(all, whole) << first;
  }
}

TEST_F(Offload, IsCountedAsPlannedAndApartFromMemory) {
  for (const char* what : kPlaces)
    for (const int64_t ranks : {1, 3}) {
      const auto trainer = offloaded({.name = "", .keys = {{"precision", "\"bf16\""}}}, ranks, 1, what, folder_).trainer();
      trainer->step();
      std::array<int64_t, kArenas> planned{};
      int64_t in_file = 0;
      for (const Plan* plan : trainer->plans()) {
        in_file += plan->memory.file_bytes();
        for (size_t a = 0; a < planned.size(); ++a) planned[a] += plan->memory.in_file[a] ? 0 : plan->memory.bytes[a];
      }
      const MemoryAccount::Uses uses = trainer->model().context().memory()->account().uses();
      EXPECT_GT(in_file, 0);
      EXPECT_EQ(uses.of[static_cast<size_t>(MemoryRole::file)].now, in_file) << what << ", " << ranks << " ranks";
      for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer, Arena::packed})
        EXPECT_EQ(uses.of[static_cast<size_t>(role_of(arena))].now, planned[static_cast<size_t>(arena)]) << what << " " << name_of(arena);
      EXPECT_EQ(uses.of[static_cast<size_t>(MemoryRole::optimizer)].peak, 0) << "it was never in memory";
      EXPECT_EQ(trainer->memory_bytes(), uses.all.now) << what << ", " << ranks << " ranks";
      EXPECT_TRUE(std::filesystem::is_empty(folder_));
    }
}

/// 4 million parameters: 16 MB, as much of gradients, and 32 MB of moments.
constexpr int64_t kMegabyte = 1'000'000;

std::shared_ptr<Model> large_model(int64_t memory_limit = 0) {
  const auto context = std::make_shared<Context>(
      ContextOptions{.device = "cpu", .threads = 1, .memory_limit = memory_limit, .log = {}, .parallel = {}, .memory = {}});
  return std::make_shared<Model>(context, build_mlp({.inputs = 1000, .hidden = {2000}, .outputs = 1000}), 1);
}

Recipe recipe_of(const std::string& what, const std::string& folder) {
  Recipe recipe{.batch = 1};
  recipe.device = "cpu";
  recipe.offload = what;
  recipe.offload_folder = folder;
  return recipe;
}

StepReport step(Trainer& trainer) {
  std::vector<float> x(1000, 0.5F), y(1000, 0.25F);
  const std::vector<HostView> batch = {plain_view("x", DType::f32, {1, 1000}, x.data()), plain_view("y", DType::f32, {1, 1000}, y.data())};
  return trainer.step(batch);
}

std::string refusal_of(Code code, const std::shared_ptr<Model>& model, const Recipe& recipe) {
  const Error error = error_of([&] { Trainer(model, recipe, nullptr); });
  EXPECT_EQ(error.code(), code) << error.message();
  return error.message();
}

/// Bytes of this process's pages that are not backed by a file.
int64_t anonymous_memory() {
  const std::string status = os::short_file("/proc/self/status");
  const size_t at = status.find("RssAnon:");
  return at == std::string::npos ? -1 : std::strtoll(status.c_str() + at + 8, nullptr, 10) * 1024;
}

TEST_F(Offload, TakesSoMuchLessMemoryOfTheMachine) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's shadow is memory too";
  if (anonymous_memory() < 0) GTEST_SKIP() << "the system does not tell RssAnon";
  const auto taken = [&](const std::string& what, const std::string& folder) {
    const int64_t before = anonymous_memory();
    const auto model = large_model();
    Trainer trainer(model, recipe_of(what, folder), nullptr);
    step(trainer);
    step(trainer);
    return anonymous_memory() - before;
  };
  taken("none", "");  // memory that only the first one takes
  const int64_t resident = taken("none", "");
  EXPECT_NEAR(static_cast<double>(resident - taken("optimizer", folder_)), 32.0 * kMegabyte, 1.0 * kMegabyte);
  EXPECT_NEAR(static_cast<double>(resident - taken("parameters", folder_)), 48.0 * kMegabyte, 1.0 * kMegabyte);
  EXPECT_NEAR(static_cast<double>(resident - taken("gradients", folder_)), 64.0 * kMegabyte, 1.0 * kMegabyte);
}

TEST_F(Offload, LetsAStepFitInAMemoryLimitThatIsTooLowForAllOfIt) {
  const int64_t limit = 45 * kMegabyte;
  refusal_of(Code::out_of_memory, large_model(limit), recipe_of("none", ""));
  Trainer trainer(large_model(limit), recipe_of("optimizer", folder_), nullptr);
  EXPECT_FALSE(step(trainer).skipped);
}

TEST_F(Offload, MovesTheParametersUnderAllThatKnowThem) {
  const auto model = large_model();
  Trainer before(model, recipe_of("none", ""), nullptr);
  step(before);
  const std::string digest = model->digest();
  const Address place = model->data(model->parameters()[0]);
  const Trainer moved(model, recipe_of("parameters", folder_), nullptr);
  EXPECT_EQ(model->data(model->parameters()[0]), place);
  EXPECT_EQ(model->digest(), digest);
  const double loss = step(before).loss;
  const auto other = large_model();
  Trainer resident(other, recipe_of("none", ""), nullptr);
  step(resident);
  EXPECT_EQ(loss, step(resident).loss);
  EXPECT_EQ(model->digest(), other->digest());
}

TEST_F(Offload, LeavesTheParametersInMemoryIfTheTrainerIsNotMade) {
  const auto model = large_model(26 * kMegabyte);
  const std::string digest = model->digest();
  const auto uses = [&](MemoryRole role) { return model->context().memory()->account().uses().of[static_cast<size_t>(role)]; };
  const int64_t parameters = uses(MemoryRole::parameters).now;
  Recipe recipe = recipe_of("parameters", folder_);
  recipe.batch = 1000;  // whose activations do not fit
  refusal_of(Code::out_of_memory, model, recipe);
  EXPECT_GT(uses(MemoryRole::file).peak, parameters - 1) << "it had moved them";
  EXPECT_EQ(uses(MemoryRole::file).now, 0);
  EXPECT_EQ(uses(MemoryRole::parameters).now, parameters);
  EXPECT_EQ(model->digest(), digest);
  Trainer trainer(model, recipe_of("parameters", folder_), nullptr);
  EXPECT_FALSE(step(trainer).skipped);
  const std::string trained = model->digest();
  refusal_of(Code::out_of_memory, model, recipe);  // of a model that was in the file before, and stays there
  EXPECT_EQ(uses(MemoryRole::file).now, uses(MemoryRole::file).peak);
  EXPECT_EQ(model->digest(), trained);
}

TEST_F(Offload, LeavesInTheFileWhatAnotherTrainerUsesToo) {
  std::vector<std::string> warnings;
  const Logger log{.write = Training::hear, .user = &warnings, .level = LogLevel::warning};
  const auto context = std::make_shared<Context>(
      ContextOptions{.device = "cpu", .threads = 1, .memory_limit = 8 * kMegabyte, .log = log, .parallel = {}, .memory = {}});
  const auto model = std::make_shared<Model>(context, build_mlp({.inputs = 100, .hidden = {200}, .outputs = 100}), 1);
  const Trainer other(model, recipe_of("none", ""), nullptr);
  const Address place = model->data(model->parameters()[0]);
  const std::string digest = model->digest();
  Recipe recipe = recipe_of("parameters", folder_);
  recipe.batch = 20'000;  // whose activations do not fit
  refusal_of(Code::out_of_memory, model, recipe);
  EXPECT_EQ(model->data(model->parameters()[0]), place);
  EXPECT_EQ(model->digest(), digest);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("stay in a file; "), std::string::npos) << warnings[0];
}

TEST_F(Offload, IsRefusedWhereTheFolderIsNotThereOrHasNoRoom) {
  const auto model = large_model();
  const std::string digest = model->digest();
  for (const char* what : kPlaces) {
    const std::string why = refusal_of(Code::io, model, recipe_of(what, folder_ + "/missing"));
    EXPECT_NE(why.find("missing: No such file or directory"), std::string::npos) << why;
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit small = before;
    small.rlim_cur = 10 * kMegabyte;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string full = refusal_of(Code::io, model, recipe_of(what, folder_));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_NE(full.find("bytes are free there"), std::string::npos) << full;
  }
  EXPECT_EQ(model->digest(), digest);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  Trainer trainer(model, recipe_of("none", ""), nullptr);
  EXPECT_FALSE(step(trainer).skipped);
}

// With the right to mount, a thread gets its own read-only file system there; otherwise the folder's mode refuses.
TEST_F(Offload, IsRefusedInAFolderThatIsReadOnly) {
  const auto model = large_model();
  const std::string digest = model->digest();
  std::thread([&] {
    const bool is_mounted = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                            mount("none", folder_.c_str(), "tmpfs", MS_RDONLY, nullptr) == 0;
    if (!is_mounted && chmod(folder_.c_str(), 0555) == 0 && access(folder_.c_str(), W_OK) == 0)
      GTEST_SKIP() << "skipped: root may write everywhere, and may not mount here";
    for (const char* what : kPlaces) {
      const std::string why = refusal_of(Code::io, model, recipe_of(what, folder_));
      EXPECT_NE(why.find(is_mounted ? "Read-only file system" : "Permission denied"), std::string::npos) << why;
      EXPECT_NE(why.find(folder_), std::string::npos) << why;
    }
    if (!is_mounted) chmod(folder_.c_str(), 0755);
  }).join();
  EXPECT_EQ(model->digest(), digest);
  Trainer trainer(model, recipe_of("none", ""), nullptr);
  EXPECT_FALSE(step(trainer).skipped);
}

// Each rank of a group has a folder on its own host.
TEST_F(Offload, ThatIsRefusedOnOneRankEndsTheGroupWithItsReason) {
  each_of_group(2, [&](int rank, Communicator& own) {
    Recipe recipe = offloaded({.name = "", .keys = {}}, 1, 1, "optimizer", rank == 1 ? folder_ + "/missing" : folder_).recipe;
    recipe.device = "cpu";
    try {
      Trainer(training_of({.name = "", .keys = {}}, 1).model(), recipe, nullptr, PlanOptions(), &own);
      ADD_FAILURE() << "rank " << rank << " was not refused";
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("missing: No such file or directory"), std::string::npos) << rank << ": " << error.message();
      if (rank == 1) own.abort(error.message());  // like the C ABI
    }
  });
}

TEST_F(Offload, OfNothingNeedsNoFolder) {
  const std::string why = refusal_of(Code::invalid_argument, large_model(), recipe_of("none", folder_));
  EXPECT_NE(why.find("offload is none"), std::string::npos) << why;
}

TEST_F(Offload, OfMemoryThatTheHostGaveIsRefusedForParametersAlone) {
  HostAllocator host;
  host.alloc = [](void*, size_t bytes, size_t align) { return std::aligned_alloc(align, (bytes + align - 1) / align * align); };
  host.free = [](void*, void* memory) { std::free(memory); };
  const auto context = std::make_shared<Context>(
      ContextOptions{.device = "cpu", .threads = 1, .log = {}, .parallel = {}, .memory = std::make_shared<MemorySource>(host)});
  const auto model = std::make_shared<Model>(context, build_mlp({.inputs = 1000, .hidden = {20}, .outputs = 1000}), 1);
  const std::string why = refusal_of(Code::unsupported, model, recipe_of("parameters", folder_));
  EXPECT_NE(why.find("offload the optimizer only"), std::string::npos) << why;
  Trainer trainer(model, recipe_of("optimizer", folder_), nullptr);
  EXPECT_FALSE(step(trainer).skipped);
}

}  // namespace
}  // namespace st
