// Mixed precision: near fp32 and near the reference, and the same bits for any threads, packed weights or number of rows in a call.
#include <gtest/gtest.h>

#include <algorithm>

#include "cpu_classes.h"
#include "training.h"

namespace st {
namespace {

constexpr int kSteps = 6;
const GptOptions kAutocastGpt = {.layers = 2, .width = 39, .heads = 3, .context = 17, .vocabulary = 61};

std::vector<double> losses(const std::string& device, const std::string& precision, std::string* digest = nullptr, int threads = 2) {
  const Training training{.device = device,
                          .threads = threads,
                          .options = kAutocastGpt,
                          .recipe = {.precision = precision, .batch = 3, .accumulate = 2, .warmup = 0}};
  const auto trainer = training.trainer();
  const std::vector<double> made = losses_of(*trainer, kSteps);
  if (digest != nullptr) *digest = trainer->state_digest();
  return made;
}

struct Rows {
  std::vector<int32_t> tokens = std::vector<int32_t>(static_cast<size_t>(9 * kAutocastGpt.context + 1));
  Rows() {
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>((i * i + 3 * i) % 61);
  }
  std::vector<HostView> first(int64_t count) const {
    return {plain_view("tokens", DType::i32, {count, kAutocastGpt.context}, tokens.data()),
            plain_view("targets", DType::i32, {count, kAutocastGpt.context}, tokens.data() + 1)};
  }
};

// 8 bits of digits: each activation is off by up to 2^-9 of itself, the mean of 100 losses by far less. Adam's first steps move every
// weight by the whole rate wherever the gradient points, so a wrong term shows at once, at 1e-2 and more.
void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 3e-3 * want[i]) << "step " << i + 1;
}

TEST(Autocast, IsNearFp32AndNotTheSame) {
  const auto bf16 = losses("cpu", "bf16"), fp32 = losses("cpu", "fp32");
  expect_near(bf16, fp32);
  EXPECT_NE(bf16, fp32);
}

TEST(Autocast, IsNearTheReferenceInEveryClass) {
  const auto want = losses("reference", "bf16");
  for (const std::string& name : cpu_classes()) {
    const ForcedClass forced(name);
    expect_near(losses("cpu", "bf16"), want);
  }
}

TEST(Autocast, HasTheSameBitsForAnyThreads) {
  for (const std::string& name : cpu_classes()) {
    const ForcedClass forced(name);
    std::string one;
    const auto want = losses("cpu", "bf16", &one, 1);
    for (const int threads : {2, 3, 4}) {
      std::string many;
      EXPECT_EQ(losses("cpu", "bf16", &many, threads), want) << name << " with " << threads << " threads";
      EXPECT_EQ(many, one) << name << " with " << threads << " threads";
    }
  }
}

// traps.md, order of sums 2: a micro-batch's gradient is whole before it is added, so only the sums over micro-batches differ.
TEST(Autocast, AccumulatedMicroBatchesAreNearOneLargeOne) {
  const auto run = [](int64_t batch, int64_t accumulate) {
    const Training training{
        .device = "cpu", .threads = 2, .options = kAutocastGpt, .recipe = {.precision = "bf16", .batch = batch, .accumulate = accumulate}};
    return losses_of(*training.trainer(), kSteps);
  };
  expect_near(run(2, 3), run(6, 1));
}

TEST(Autocast, AShortLastMicroBatchTakesThePrecisionToo) {
  const Rows all;
  const auto run = [&](const std::string& precision) {
    const Training training{
        .device = "cpu", .threads = 2, .options = kAutocastGpt, .recipe = {.precision = precision, .batch = 3, .accumulate = 2}};
    const auto trainer = training.trainer(false);
    const std::vector<HostView> rows = all.first(5);
    std::vector<double> made;
    for (int step = 0; step < 3; ++step) made.push_back(trainer->step(rows).loss);
    return made;
  };
  expect_near(run("bf16"), run("fp32"));
  EXPECT_NE(run("bf16"), run("fp32"));
}

std::unique_ptr<Trainer> three_micro_batches(bool packs) {
  const Training training{.device = "cpu", .threads = 2, .options = kAutocastGpt};
  Recipe recipe;
  recipe.precision = "bf16", recipe.batch = 3, recipe.accumulate = 3;
  PlanOptions options;
  if (!packs) options.skip = {"pack_weights"};
  return std::make_unique<Trainer>(training.model(), recipe, nullptr, options);
}

TEST(Autocast, PackedWeightsAndAShortMicroBatchChangeNoBit) {
  const Rows rows;
  const auto packed = three_micro_batches(true), plain = three_micro_batches(false);
  EXPECT_GT(packed->plan().memory.of(Arena::packed), plain->plan().memory.of(Arena::packed));
  for (const int64_t count : {9, 8, 9, 4}) EXPECT_EQ(packed->step(rows.first(count)).loss, plain->step(rows.first(count)).loss) << count;
  EXPECT_EQ(packed->state_digest(), plain->state_digest());
}

// Working copies are made once a step; a host that writes a weight between two slices of one has the later micro-batches see it.
TEST(Autocast, WorkingCopiesAreOfTheWeightsAsTheyAre) {
  const Rows rows;
  const auto run = [&](bool packs, bool writes) {
    const auto it = three_micro_batches(packs);
    const std::string name = "block.0.mlp.expand.weight";
    std::vector<float> values(39 * 4 * 39);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) / 100;
    const auto& instructions = it->plan().instructions;  // a slice is one of them
    const int64_t first = std::ranges::count(instructions, 0, &Instruction::micro_batch);
    EXPECT_GT(std::ssize(instructions), 2 * first);
    int64_t slices = 0;
    while (!it->advance(rows.first(9), 0))
      if (++slices == first && writes)
        it->model().set(it->model().parameter_named(name), plain_view(name, DType::f32, {39, 4 * 39}, values.data()));
    return it->state_digest();
  };
  EXPECT_EQ(run(true, true), run(false, true));
  EXPECT_NE(run(true, true), run(true, false));
}

// They are made again in the midst of a micro-batch, and nothing that it has computed may lie where they are made.
TEST(Autocast, WeightsWrittenAsTheyWereChangeNoBitAtAnyTime) {
  const Rows rows;
  const auto run = [&](bool packs, int64_t every) {
    const auto it = three_micro_batches(packs);
    const std::string name = "block.0.mlp.expand.weight";
    std::vector<float> values(39 * 4 * 39);
    const HostView view = plain_view(name, DType::f32, {39, 4 * 39}, values.data());
    it->model().get(it->model().parameter_named(name), view);
    for (int64_t slices = 0; !it->advance(rows.first(9), 0);)
      if (++slices % every == 0 && slices < std::ssize(it->plan().instructions) / 2)
        it->model().set(it->model().parameter_named(name), view);
    return it->state_digest();
  };
  for (const bool packs : {true, false}) {
    const std::string untouched = run(packs, 1 << 20);
    for (const int64_t every : {1, 7, 40, 90})
      EXPECT_EQ(run(packs, every), untouched) << "written after every " << every << " instructions";
  }
}

// What a step keeps for backward is mostly 16 bits wide, and the weights' copies take less than what that saves.
TEST(Autocast, TakesLessMemoryForActivations) {
  const auto bytes = [](const std::string& precision) {
    const Training training{.device = "cpu", .options = kAutocastGpt, .recipe = {.precision = precision, .batch = 32}};
    const auto trainer = training.trainer();
    const MemoryLayout& memory = trainer->plan().memory;
    return memory.of(Arena::stash) + memory.of(Arena::activations);
  };
  EXPECT_LT(static_cast<double>(bytes("bf16")), 0.75 * static_cast<double>(bytes("fp32")));
}

}  // namespace
}  // namespace st
