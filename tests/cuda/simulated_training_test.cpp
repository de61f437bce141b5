// A GPT trained on the simulated device, or on a GPU: the cpu's losses, and one state whatever the split of the work.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "base/os/loaded_library.h"
#include "device_name.h"
#include "equivalence/token_rows.h"
#include "fake_cublaslt.h"
#include "plan/exchange_memory.h"
#include "saved_trainer.h"
#include "thrown_error.h"
#include "training.h"

namespace st {
namespace {

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

// Streams of a process have one order: tests/cuda/CMakeLists.txt runs Late/* and Random/* in processes of their own.

class SimulatedRepeats : public testing::TestWithParam<Keys> {};

const Keys kDropped = {{"micro_batches", "4"}, {"dropout", "0.1"}}, kDroppedIn16Bits = {{"micro_batches", "4"}, {"precision", "\"bf16\""}};
INSTANTIATE_TEST_SUITE_P(Eager, SimulatedRepeats, testing::Values(kDropped));
INSTANTIATE_TEST_SUITE_P(Late, SimulatedRepeats, testing::Values(kDropped));
INSTANTIATE_TEST_SUITE_P(Random, SimulatedRepeats, testing::Values(kDroppedIn16Bits));

/// Each micro-batch of a step is computed in its own way: the first, those between, which are recorded once, the last, and one of one row.
constexpr int64_t kRowsOfSteps[] = {8, 6, 7, 8};

Training training_with(const Keys& keys, const std::string& device, const Keys& more = {}) {
  Keys all = keys;
  all.insert(all.end(), more.begin(), more.end());
  Training training = training_on(device, all);
  training.options.layers = 1;
  return training;
}

StepReport step_of(Trainer& trainer, int64_t rows, bool in_slices) {
  const TokenRows all(8, odd_gpt().context, odd_gpt().vocabulary);
  std::optional<StepReport> report;
  while (!report) report = trainer.advance(all.first(rows), in_slices ? 0 : std::numeric_limits<double>::infinity());
  return *report;
}

Trained made_by(const Training& training, bool in_slices = false) {
  const auto trainer = training.trainer(false);
  Trained made;
  for (const int64_t rows : kRowsOfSteps) made.losses.push_back(step_of(*trainer, rows, in_slices).loss);
  made.state = trainer->state_digest();
  return made;
}

TEST_P(SimulatedRepeats, ItsBitsWithAndWithoutRecordings) {
  const Training training = training_with(GetParam(), kDevice);
  const Trained once = made_by(training);
  EXPECT_EQ(made_by(training), once);
  {
    const NoRecordings unrecorded;
    EXPECT_EQ(made_by(training), once);
  }
  EXPECT_EQ(made_by(training, true), once);
  EXPECT_EQ(made_by(training_with(GetParam(), kDevice, {{"find_nan", "true"}})), once);
  const std::vector<double> wanted = made_by(training_with(GetParam(), "cpu")).losses;
  const double most = GetParam() == kDropped ? 1e-5 : 1e-3;
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(once.losses[i], wanted[i], most * wanted[i]) << "step " << i;
}

/// Bytes of all results, by attempt, section, node and micro-batch.
using Seen = std::map<std::array<int32_t, 4>, std::vector<std::byte>>;

/// Adds what rank 0 makes in the next steps. `last`: of each slot after its last write.
void watch(Trainer& trainer, Seen& seen, std::map<std::string, std::vector<std::byte>>& last) {
  trainer.watch([&](size_t rank) -> Executor::Watch {
    if (rank > 0) return {};
    return [&](const Instruction& at, const Call& call) {
      if (at.is_wait() || at.makes == Copy::lasting) return;  // which follow a change of weights alone
      const Program& program = trainer.plan().program;
      const Node& node = program.sections[static_cast<size_t>(at.section)].graph[at.node];
      std::vector<std::byte>& results = seen[{static_cast<int32_t>(trainer.steps()), at.section, at.node, at.micro_batch}];
      const auto add = [&](const Operand& made) {
        std::vector<std::byte> bytes(made.data ? static_cast<size_t>(made.elements() * bytes_of(made.dtype)) : 0);
        trainer.model().context().backend().to_host(bytes.data(), made.data, std::ssize(bytes));
        results.insert(results.end(), bytes.begin(), bytes.end());
        return bytes;
      };
      for (const Operand& out : call.out) add(out);
      for (size_t i = 0; i < call.writes.size(); ++i) last[program.slot(node.writes[i]).name] = add(call.writes[i]);
    };
  });
}

/// A step in which values are searched, since its loss is not finite; it is rolled back.
void fail_step(Trainer& trainer) {
  Model& model = trainer.model();
  const SlotId gamma = model.parameter_named("final_norm.gamma");
  const std::vector<float> weights = weights_of(model, "final_norm.gamma");
  const auto set = [&](std::vector<float> to) {
    model.set(gamma, plain_view("gamma", DType::f32, model.slot(gamma).type.shape, to.data()));
  };
  set(std::vector<float>(weights.size(), std::numeric_limits<float>::infinity()));
  EXPECT_EQ(error_of([&] { step_of(trainer, kRowsOfSteps[0], false); }).code(), Code::not_finite);
  set(weights);
}

/// Steps without a watch come before and after the two with one, of which one is ragged. With 16 bits on ranks.
TEST_P(SimulatedRepeats, ItsBitsWhileValuesAreWatched) {
  const Keys split = GetParam() == kDropped ? Keys{} : Keys{{"ranks", "2"}, {"zero", "2"}, {"overlap", "\"on\""}};
  const Trained once = made_by(training_with(GetParam(), kDevice));
  const auto seen_by = [&](Keys keys, bool in_slices) {
    keys.insert(keys.end(), split.begin(), split.end());
    const Training training = training_with(GetParam(), kDevice, keys);
    const auto trainer = training.trainer(false);
    Trained made;
    Seen seen;
    std::map<std::string, std::vector<std::byte>> last;
    for (const int64_t rows : kRowsOfSteps) {
      const size_t at = made.losses.size();
      if (at == 1 && training.recipe.find_nan) fail_step(*trainer);
      if (at == 1) watch(*trainer, seen, last);
      if (at == 3) trainer->watch([](size_t) { return Executor::Watch(); });
      made.losses.push_back(step_of(*trainer, rows, in_slices).loss);
      if (at != 2 || !split.empty()) continue;
      for (const SlotId id : trainer->model().parameters()) {
        const std::string& name = trainer->model().slot(id).name;
        const std::vector<float> weights = weights_of(trainer->model(), name);
        EXPECT_EQ(std::memcmp(last.at(name).data(), weights.data(), last.at(name).size()), 0) << name;
      }
    }
    made.state = trainer->state_digest();
    EXPECT_EQ(made, once);
    return seen;
  };
  const Seen seen = seen_by({{"find_nan", "true"}}, false);
  EXPECT_GT(seen.size(), 100);
  const NoRecordings unrecorded;
  EXPECT_TRUE(seen_by({}, true) == seen);
}

/// Sizes that cuBLASLt takes (fake_cublaslt.cpp), which the runs above do not have; on a GPU also heads for tensor cores.
TEST(SimulatedTraining, ByALibraryHasTheLossesOfTheCpuAndOneState) {
  const bool is_simulated = std::string_view(kDevice) == "cuda-simulated";
  setenv("SCALETRAIN_SIMULATED_CUBLASLT", "1", 1);
  const auto with = [is_simulated](const std::string& device, Keys keys) {
    keys.emplace_back("precision", "\"bf16\"");
    keys.emplace_back("micro_batches", "3");
    Training training = training_on(device, keys);
    training.options = {.layers = 2, .width = 16, .heads = 2, .context = 8, .vocabulary = 24};
    if (!is_simulated) training.options = {.layers = 2, .width = 64, .heads = 2, .context = 32, .vocabulary = 64};
    return trained(training, 3);
  };
  const Trained alone = with(kDevice, {});
  if (is_simulated) {
    const auto* const counts = os::LoadedLibrary::if_open("libcublasLt.so.13")->need<AskFakeCublasLt>("st_fake_cublaslt")();
    EXPECT_GT(counts->products, 0);
    EXPECT_EQ(counts->alive, 0);  // nor is any handle left
  }
  for (const Keys& keys : {Keys{{"recompute", "\"full\""}}, Keys{{"ranks", "2"}, {"zero", "2"}}, Keys{{"ranks", "2"}, {"stages", "2"}}})
    EXPECT_EQ(with(kDevice, keys), alone) << keys.back().first;
  {
    const NoRecordings unrecorded;
    EXPECT_EQ(with(kDevice, {}), alone);
  }
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
  // All 50 rows, of which later ones overwrite this one; on two ranks, one has it.
  for (Keys keys : {Keys{}, Keys{{"ranks", "2"}}, Keys{{"ranks", "2"}, {"zero", "2"}}, Keys{{"offload", "\"optimizer\""}}}) {
    for (const auto& [key, value] : Keys{{"batch", "10"}, {"micro_batches", "5"}}) keys.emplace_back(key, value);
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
  for (const char* part : {" is available on device cuda-simulated; ", "The step's largest parts: ", "the largest tensor is ",
                           "Changes of the recipe that fit: ", "offload optimizer: -"})
    EXPECT_NE(error.message().find(part), std::string::npos) << part << " in " << error.message();
  Recipe offloads = training.recipe;
  offloads.set("offload", "\"optimizer\"");
  EXPECT_NO_THROW(made_within(limit, offloads)->step());
}

}  // namespace
}  // namespace st
