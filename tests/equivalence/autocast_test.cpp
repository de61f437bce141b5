// Mixed precision: near fp32 and near the reference, and the same bits for any threads, packed weights or number of rows in a call.
#include <gtest/gtest.h>

#include <cmath>

#include "cpu_classes.h"
#include "training.h"

namespace st {
namespace {

constexpr int kSteps = 6;
const GptOptions kGpt = {.layers = 2, .width = 39, .heads = 3, .context = 17, .vocabulary = 61};

std::vector<double> losses(const std::string& device, const std::string& precision, std::string* digest = nullptr, int threads = 2) {
  const Training training{
      .device = device, .threads = threads, .options = kGpt, .recipe = {.precision = precision, .batch = 3, .accumulate = 2, .warmup = 0}};
  const auto trainer = training.trainer();
  const std::vector<double> made = losses_of(*trainer, kSteps);
  if (digest != nullptr) *digest = trainer->state_digest();
  return made;
}

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
        .device = "cpu", .threads = 2, .options = kGpt, .recipe = {.precision = "bf16", .batch = batch, .accumulate = accumulate}};
    return losses_of(*training.trainer(), kSteps);
  };
  expect_near(run(2, 3), run(6, 1));
}

TEST(Autocast, AShortLastMicroBatchTakesThePrecisionToo) {
  const auto run = [](const std::string& precision) {
    const Training training{
        .device = "cpu", .threads = 2, .options = kGpt, .recipe = {.precision = precision, .batch = 3, .accumulate = 2}};
    const auto trainer = training.trainer(false);
    std::vector<int32_t> tokens(static_cast<size_t>(5 * kGpt.context + 1));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>((i * i + 3 * i) % 61);
    const std::vector<HostView> rows = {plain_view("tokens", DType::i32, {5, kGpt.context}, tokens.data()),
                                        plain_view("targets", DType::i32, {5, kGpt.context}, tokens.data() + 1)};
    std::vector<double> made;
    for (int step = 0; step < 3; ++step) made.push_back(trainer->step(rows).loss);
    return made;
  };
  expect_near(run("bf16"), run("fp32"));
  EXPECT_NE(run("bf16"), run("fp32"));
}

// What a step keeps for backward is mostly 16 bits wide, and the weights' copies take less than what that saves.
TEST(Autocast, TakesLessMemoryForActivations) {
  const auto bytes = [](const std::string& precision) {
    const Training training{.device = "cpu", .options = kGpt, .recipe = {.precision = precision, .batch = 32}};
    const auto trainer = training.trainer();
    const MemoryLayout& memory = trainer->plan().memory;
    return memory.of(Arena::stash) + memory.of(Arena::activations);
  };
  EXPECT_LT(static_cast<double>(bytes("bf16")), 0.75 * static_cast<double>(bytes("fp32")));
}

}  // namespace
}  // namespace st
