// A GPT trained on the simulated device, or on a GPU: the cpu's losses, and one state whatever the split of the work.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "base/os/loaded_library.h"
#include "fake_cublaslt.h"
#include "plan/exchange_memory.h"
#include "saved_trainer.h"
#include "thrown_error.h"
#include "training.h"

namespace st {
namespace {

/// ST_TEST_DEVICE=cuda: on a GPU, by tests/gpu/run.
const char* const kDevice = std::getenv("ST_TEST_DEVICE") != nullptr ? std::getenv("ST_TEST_DEVICE") : "cuda-simulated";

using Keys = std::vector<std::pair<std::string, std::string>>;

Training training_on(const std::string& device, const Keys& keys = {}) {
  Training made{.device = device, .recipe = {.batch = 2}, .ignored = true};
  made.recipe.set("warmup", "3");
  for (const auto& [key, value] : keys) made.recipe.set(key, value);
  return made;
}

/// Losses and state after some steps.
struct Trained {
  std::vector<double> losses;
  std::string state;
  bool operator==(const Trained&) const = default;
};

Trained trained(const Training& training, int steps = 4) {
  const auto trainer = training.trainer();
  Trained made{losses_of(*trainer, steps), ""};
  made.state = trainer->state_digest();
  return made;
}

TEST(SimulatedTraining, HasTheLossesOfTheCpu) {
  const std::vector<double> made = trained(training_on(kDevice), 40).losses, wanted = trained(training_on("cpu"), 40).losses;
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(made[i], wanted[i], 1e-5 * wanted[i]) << "step " << i;
  EXPECT_LT(wanted.back(), wanted.front());
}

/// The bound of issue 42: 1e-6 of a gradient's length.
TEST(SimulatedTraining, HasTheGradientsOfTheCpu) {
  const auto made = training_on(kDevice).trainer(), wanted = training_on("cpu").trainer();
  made->step();
  wanted->step();
  const Model& model = made->model();
  for (const SlotId id : model.parameters()) {
    const Slot& parameter = model.slot(id);
    const auto gradient_of = [&](const Trainer& trainer) {
      std::vector<float> values(static_cast<size_t>(parameter.type.shape.elements()));
      trainer.gradient(parameter.name, plain_view(parameter.name, DType::f32, parameter.type.shape, values.data()));
      return values;
    };
    const std::vector<float> x = gradient_of(*made), y = gradient_of(*wanted);
    double difference = 0, length = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      difference += std::pow(double{x[i]} - double{y[i]}, 2);
      length += std::pow(double{y[i]}, 2);
    }
    EXPECT_GT(length, 0) << parameter.name;
    EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(length)) << parameter.name;
  }
}

/// Beyond fp16 in backward: the op, the section and the indices are the cpu's.
TEST(SimulatedTraining, NamesTheFirstValueThatIsNotFiniteAsTheCpuDoes) {
  const auto found = [](const std::string& device) {
    const auto trainer = training_on(device, {{"precision", "\"fp16\""}, {"loss_scale", "1e9"}, {"find_nan", "true"}}).trainer();
    const std::string before = trainer->state_digest();
    const Error error = error_of([&] { trainer->step(); });
    EXPECT_EQ(error.code(), Code::not_finite) << error.message();
    EXPECT_EQ(trainer->state_digest(), before);
    return error.message();
  };
  EXPECT_EQ(found(kDevice), found("cpu"));
}

TEST(SimulatedTraining, HasTheLossesOfTheCpuIn16Bits) {
  const Keys keys = {{"precision", "\"bf16\""}, {"accumulate", "2"}};
  const std::vector<double> made = trained(training_on(kDevice, keys), 10).losses, wanted = trained(training_on("cpu", keys), 10).losses;
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(made[i], wanted[i], 1e-3 * wanted[i]) << "step " << i;
}

/// The last stage sums the loss in place, which the others read.
TEST(SimulatedTraining, StagesOnOneDeviceHaveTheMemoryForCopiesOfTermsBeforeTheyStep) {
  const auto trainer = training_on(kDevice, {{"stages", "2"}, {"micro_batches", "2"}}).trainer();
  int64_t planned = 0;
  for (const Plan* plan : trainer->plans()) planned += staged_memory(*plan) + plan->memory.of(Arena::buckets);
  const auto used = [&] { return trainer->model().context().memory()->account().uses().of[static_cast<size_t>(MemoryRole::buckets)].now; };
  EXPECT_EQ(planned, 2 * kAlignment);
  EXPECT_EQ(used(), planned);
  trainer->step();
  EXPECT_EQ(used(), planned);
}

// Streams of a process have one order. The cases below are divided among the three: tests/cuda/CMakeLists.txt runs Late/* and Random/* in
// processes of their own.

class SimulatedRepeats : public testing::TestWithParam<Keys> {};

const Keys kDropped = {{"accumulate", "3"}, {"dropout", "0.1"}}, kDroppedIn16Bits = {{"accumulate", "2"}, {"precision", "\"bf16\""}};
INSTANTIATE_TEST_SUITE_P(Eager, SimulatedRepeats, testing::Values(kDropped));
INSTANTIATE_TEST_SUITE_P(Late, SimulatedRepeats, testing::Values(kDropped));
INSTANTIATE_TEST_SUITE_P(Random, SimulatedRepeats, testing::Values(kDroppedIn16Bits));

TEST_P(SimulatedRepeats, ItsBitsWithAndWithoutRecordings) {
  constexpr int kSteps = 3;
  const Training training = training_on(kDevice, GetParam());
  const Trained once = trained(training, kSteps);
  EXPECT_EQ(trained(training, kSteps), once);
  setenv("SCALETRAIN_CUDA_SYNC", "1", 1);  // nothing is recorded
  EXPECT_EQ(trained(training, kSteps), once);
  unsetenv("SCALETRAIN_CUDA_SYNC");
  const auto in_slices = training.trainer();
  for (int step = 0; step < kSteps; ++step)
    while (!in_slices->advance(0)) {
    }
  EXPECT_EQ(in_slices->state_digest(), once.state);
  Keys watched = GetParam();
  watched.emplace_back("find_nan", "true");
  EXPECT_EQ(trained(training_on(kDevice, watched), kSteps), once);
  const std::vector<double> wanted = trained(training_on("cpu", GetParam()), kSteps).losses;
  const double most = GetParam() == kDropped ? 1e-5 : 1e-3;
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(once.losses[i], wanted[i], most * wanted[i]) << "step " << i;
}

/// A precision, then how the work is split.
class SimulatedSplit : public testing::TestWithParam<Keys> {};

const std::pair<std::string, std::string> kFp32 = {"precision", "\"fp32\""}, kBf16 = {"precision", "\"bf16\""};
INSTANTIATE_TEST_SUITE_P(Eager, SimulatedSplit,
                         testing::Values(Keys{kFp32, {"recompute", "\"full\""}}, Keys{kFp32, {"ranks", "2"}},
                                         Keys{kFp32, {"ranks", "2"}, {"stages", "2"}}));
INSTANTIATE_TEST_SUITE_P(Late, SimulatedSplit,
                         testing::Values(Keys{kFp32, {"ranks", "2"}, {"overlap", "\"on\""}}, Keys{kFp32, {"ranks", "2"}, {"zero", "3"}},
                                         Keys{kFp32, {"ranks", "2"}, {"stages", "2"}, {"schedule", "\"zb-h1\""}}));
INSTANTIATE_TEST_SUITE_P(Random, SimulatedSplit,
                         testing::Values(Keys{kFp32, {"ranks", "3"}, {"zero", "2"}}, Keys{kBf16, {"ranks", "2"}, {"zero", "1"}},
                                         Keys{kBf16, {"ranks", "3"}, {"zero", "3"}}));

TEST_P(SimulatedSplit, HasTheStateOfOneRank) {
  const auto with = [](Keys keys) {
    keys.emplace_back("micro_batches", "6");
    return trained(training_on(kDevice, keys), 3);
  };
  static std::map<std::string, Trained> alone;  // by precision
  const auto& precision = GetParam()[0];
  if (!alone.contains(precision.second)) alone[precision.second] = with({precision});
  EXPECT_EQ(with(GetParam()), alone[precision.second]);
}

/// Sizes that cuBLASLt takes (fake_cublaslt.cpp), which the runs above do not have; on a GPU also heads for tensor cores.
TEST(SimulatedTraining, ByALibraryHasTheLossesOfTheCpuAndOneState) {
  const bool is_simulated = std::string_view(kDevice) == "cuda-simulated";
  setenv("SCALETRAIN_SIMULATED_CUBLASLT", "1", 1);
  const auto with = [is_simulated](const std::string& device, Keys keys) {
    keys.emplace_back("precision", "\"bf16\"");
    keys.emplace_back("micro_batches", "4");
    Training training = training_on(device, keys);
    training.options = {.layers = 2, .width = 16, .heads = 2, .context = 8, .vocabulary = 24};
    if (!is_simulated) training.options = {.layers = 2, .width = 64, .heads = 2, .context = 32, .vocabulary = 64};
    return trained(training, 4);
  };
  const Trained alone = with(kDevice, {});
  if (is_simulated) {
    const auto* const counts = os::LoadedLibrary::if_open("libcublasLt.so.13")->need<AskFakeCublasLt>("st_fake_cublaslt")();
    EXPECT_GT(counts->products, 0);
    EXPECT_EQ(counts->alive, 0);  // nor is any handle left
  }
  for (const Keys& keys : {Keys{{"recompute", "\"full\""}}, Keys{{"ranks", "2"}, {"zero", "2"}}, Keys{{"ranks", "2"}, {"stages", "2"}}})
    EXPECT_EQ(with(kDevice, keys), alone) << keys.back().first;
  setenv("SCALETRAIN_CUDA_SYNC", "1", 1);  // nothing is recorded
  EXPECT_EQ(with(kDevice, {}), alone);
  unsetenv("SCALETRAIN_CUDA_SYNC");
  unsetenv("SCALETRAIN_SIMULATED_CUBLASLT");
  const std::vector<double> wanted = with("cpu", {}).losses;
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(alone.losses[i], wanted[i], 1e-3 * wanted[i]) << "step " << i;
}

TEST(SimulatedTraining, OnTensorRanksHasTheLossesOfOne) {
  Training one = training_on(kDevice, {{"micro_batches", "2"}}),
           two = training_on(kDevice, {{"micro_batches", "2"}, {"ranks", "2"}, {"tensor", "2"}});
  one.options.heads = two.options.heads = 2;
  one.options.vocabulary = two.options.vocabulary = 18;
  const std::vector<double> made = trained(two).losses, wanted = trained(one).losses;
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(made[i], wanted[i], 1e-5 * wanted[i]) << "step " << i;
}

TEST(SimulatedTraining, SkipsAStepWhoseGradientsAreNotFinite) {
  const auto trainer = training_on(kDevice, {{"precision", "\"fp16\""}, {"loss_scale_initial", "1e9"}}).trainer();
  EXPECT_TRUE(trainer->step().skipped);
  EXPECT_EQ(weights_of(trainer->model(), "final_norm.gamma"), weights_of(*training_on(kDevice).model(), "final_norm.gamma"));
  int skipped = 1;
  while (trainer->step().skipped) ASSERT_LT(++skipped, 40);
}

TEST(SimulatedTraining, GoesOnFromACheckpointWithTheSameBits) {
  const ScratchFolder folder("simulated_training");
  const Training training = training_on(kDevice, {{"optimizer", "\"adamw-8bit\""}, {"ema_decay", "0.9"}});
  const auto whole = training.trainer(), resumed = training.trainer();
  losses_of(*whole, 2);
  save(*whole, folder / "two");
  resume_from(folder / "two", *resumed);
  EXPECT_EQ(losses_of(*resumed, 2), losses_of(*whole, 2));
  EXPECT_EQ(resumed->state_digest(), whole->state_digest());
}

class SimulatedOffload : public testing::TestWithParam<Keys> {};

INSTANTIATE_TEST_SUITE_P(Eager, SimulatedOffload, testing::Values(Keys{kBf16, {"ema_decay", "0.9"}}));
INSTANTIATE_TEST_SUITE_P(Late, SimulatedOffload, testing::Values(Keys{}));
INSTANTIATE_TEST_SUITE_P(Random, SimulatedOffload, testing::Values(Keys{{"optimizer", "\"adamw-8bit\""}}));

TEST_P(SimulatedOffload, HasTheBitsOfStateOnTheDevice) {
  Keys keys = GetParam();
  keys.emplace_back("micro_batches", "2");
  const Trained resident = trained(training_on(kDevice, keys), 3);
  const char *const optimizer = "\"optimizer\"", *const parameters = "\"parameters\"", *const gradients = "\"gradients\"";
  for (const auto& [split, offloaded] : {std::pair{Keys{}, optimizer},
                                         {Keys{}, gradients},
                                         {Keys{{"ranks", "2"}}, optimizer},
                                         {Keys{{"ranks", "2"}, {"zero", "1"}}, parameters},
                                         {Keys{{"ranks", "2"}, {"zero", "2"}}, gradients},
                                         {Keys{{"ranks", "2"}, {"zero", "3"}}, gradients},
                                         {Keys{{"ranks", "2"}, {"stages", "2"}}, gradients}}) {
    if (split.size() == 1 && keys.size() > 1) continue;
    Keys all = keys;
    all.insert(all.end(), split.begin(), split.end());
    all.emplace_back("offload", offloaded);
    const Training away = training_on(kDevice, all);
    EXPECT_EQ(trained(away, 3), resident) << away.recipe.json();
    if (!split.empty()) continue;
    setenv("SCALETRAIN_CUDA_SYNC", "1", 1);  // nothing is recorded
    EXPECT_EQ(trained(away, 3), resident) << "without recordings";
    unsetenv("SCALETRAIN_CUDA_SYNC");
  }
}

TEST(SimulatedTraining, CountsOffloadedStateAsTheHosts) {
  const ScratchFolder folder("simulated_offload");
  const Training away = training_on(kDevice, {{"offload", "\"optimizer\""}}), resident = training_on(kDevice);
  const auto with = away.trainer(), without = resident.trainer();
  const MemoryAccount& account = with->model().context().memory()->account();
  const MemoryLayout &memory = with->plan().memory, &all = without->plan().memory;
  const int64_t planned = account.bytes();
  losses_of(*with, 2);
  EXPECT_EQ(account.uses().all.peak, planned);
  EXPECT_EQ(account.uses().of[static_cast<size_t>(MemoryRole::host)].now, memory.host_bytes());
  EXPECT_EQ(memory.host_bytes(), all.of(Arena::optimizer));
  EXPECT_EQ(account.uses().of[static_cast<size_t>(MemoryRole::optimizer)].peak, 0);
  EXPECT_LT(memory.device_bytes(), all.device_bytes());
  EXPECT_EQ(planned - account.uses().of[static_cast<size_t>(MemoryRole::inputs)].now, memory.device_bytes());

  save(*with, folder / "two");
  resume_from(folder / "two", *without);
  EXPECT_EQ(losses_of(*without, 2), losses_of(*with, 2));
  EXPECT_EQ(without->state_digest(), with->state_digest());

  const Error error = error_of([&] { training_on(kDevice, {{"offload", "\"optimizer\""}, {"offload_folder", "\"/tmp\""}}).trainer(); });
  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_NE(error.message().find("leave offload_folder out"), std::string::npos) << error.message();
}

/// Row 1 begins with a token that is in no vocabulary here.
class OneBadToken : public Sequences {
 public:
  explicit OneBadToken(const GptOptions& options) : Sequences(50, options.context, options.vocabulary) {}

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override {
    Sequences::fill_checked(rows, out);
    for (size_t r = 0; r < rows.size(); ++r)
      if (rows[r] == 1) reinterpret_cast<int32_t*>(out[0].data)[out[0].bytes / 4 / std::ssize(rows) * static_cast<int64_t>(r)] = 999;
  }
};

TEST(SimulatedTraining, ATokenOutsideTheVocabularyIsNamedAndChangesNothing) {
  // All rows, of which later ones overwrite this one; on two ranks, one has it.
  for (const Keys& keys :
       {Keys{{"micro_batches", "25"}}, Keys{{"micro_batches", "25"}, {"ranks", "2"}},
        Keys{{"micro_batches", "25"}, {"ranks", "2"}, {"zero", "2"}}, Keys{{"micro_batches", "25"}, {"offload", "\"optimizer\""}}}) {
    const Training training = training_on(kDevice, keys);
    const auto trainer = training.trainer_of(training.model(), std::make_shared<OneBadToken>(training.options));
    const std::string before = trainer->state_digest();
    const Error error = error_of([&] { trainer->step(); });
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_NE(error.message().find("token 999 at ["), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(", 0] is outside the vocabulary 0..16"), std::string::npos) << error.message();
    EXPECT_EQ(trainer->state_digest(), before);
  }
}

TEST(SimulatedTraining, AStepThatDoesNotFitIsRefusedWithAChangeThatFits) {
  Training training = training_on(kDevice);
  training.recipe.device = kDevice;
  const auto made_within = [&](int64_t limit, const Recipe& recipe) {
    const auto context = std::make_shared<Context>(
        ContextOptions{.device = kDevice, .threads = 1, .memory_limit = limit, .log = {}, .parallel = {}, .memory = {}});
    return std::make_unique<Trainer>(std::make_shared<Model>(context, build_gpt(training.options), 1), recipe, training.data());
  };
  const int64_t optimizer = made_within(0, training.recipe)->plan().memory.of(Arena::optimizer);
  const int64_t limit = made_within(0, training.recipe)->model().context().memory()->account().bytes() - optimizer / 2;
  const Error error = error_of([&] { made_within(limit, training.recipe); });
  EXPECT_EQ(error.code(), Code::out_of_memory);
  for (const char* part : {" is available", "The step's largest parts: ", "the largest tensor is ",
                           "Changes of the recipe that fit: ", "offload optimizer: -"})
    EXPECT_NE(error.message().find(part), std::string::npos) << part << " in " << error.message();
  Recipe offloads = training.recipe;
  offloads.set("offload", "\"optimizer\"");
  EXPECT_NO_THROW(made_within(limit, offloads)->step());
}

}  // namespace
}  // namespace st
