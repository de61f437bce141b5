// Training in 16 bits: near fp32 and near the reference, and the same bits for any number of threads. loss_scale_test.cpp tests fp16's loss
// scaling, packed_weights_test.cpp the packed weights and working copies.
#include <gtest/gtest.h>

#include "cpu_classes.h"
#include "token_rows.h"
#include "training.h"

namespace st {
namespace {

const GptOptions kAutocastGpt = {.layers = 2, .width = 39, .heads = 3, .context = 17, .vocabulary = 61};

/// bf16 has 8 significant bits: each activation has a relative error up to 2^-9, the mean of 100 losses far less. Adam's first steps move
/// every weight by the full rate in the gradient's direction, so a wrong term shows at once, at 1e-2 and more. fp16 has 11 bits: an eighth
/// of the error.
struct LowPrecision {
  std::string name;
  double tolerance;
};

class Autocast : public testing::TestWithParam<LowPrecision> {
 protected:
  struct Trained {
    std::vector<double> losses;
    std::string digest;
    bool operator==(const Trained&) const = default;
  };

  static Recipe recipe(const std::string& precision, int64_t batch, int64_t accumulate) {
    Recipe made{.precision = precision, .batch = batch, .accumulate = accumulate, .warmup = 0};
    made.loss_scale_growth_interval = 3;  // the scale grows in between
    return made;
  }
  static Trained trained(const Recipe& recipe, const std::string& device = "cpu", int threads = 2) {
    const auto trainer = Training{.device = device, .threads = threads, .options = kAutocastGpt, .recipe = recipe}.trainer();
    Trained made{.losses = losses_of(*trainer, 8), .digest = {}};
    made.digest = trainer->state_digest();
    return made;
  }
  static Recipe low() { return recipe(GetParam().name, 3, 2); }
  static void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], GetParam().tolerance * want[i]) << "step " << i + 1;
  }
};

TEST_P(Autocast, IsNearFp32AndNotTheSame) {
  const auto found = trained(low()).losses, fp32 = trained(recipe("fp32", 3, 2)).losses;
  expect_near(found, fp32);
  EXPECT_NE(found, fp32);
}

TEST_P(Autocast, IsNearTheReferenceInEveryClass) {
  const auto want = trained(low(), "reference").losses;
  for (const std::string& name : cpu_classes()) {
    const ForcedClass forced(name);
    expect_near(trained(low()).losses, want);
  }
}

TEST_P(Autocast, HasTheSameBitsForAnyThreads) {
  for (const std::string& name : cpu_classes()) {
    const ForcedClass forced(name);
    const Trained one = trained(low(), "cpu", 1);
    for (const int threads : {2, 3, 4}) EXPECT_TRUE(trained(low(), "cpu", threads) == one) << name << " with " << threads << " threads";
  }
}

// traps.md, order of sums 2: a micro-batch's gradient is complete before it is added, so only the sums over micro-batches differ.
TEST_P(Autocast, AccumulatedMicroBatchesAreNearOneLargeOne) {
  expect_near(trained(recipe(GetParam().name, 2, 3)).losses, trained(recipe(GetParam().name, 6, 1)).losses);
}

TEST_P(Autocast, AShortLastMicroBatchTakesThePrecisionToo) {
  const TokenRows all(5, kAutocastGpt.context, kAutocastGpt.vocabulary);
  const auto run = [&](const std::string& precision) {
    const auto trainer = Training{.device = "cpu", .threads = 2, .options = kAutocastGpt, .recipe = recipe(precision, 3, 2)}.trainer(false);
    std::vector<double> made;
    for (int step = 0; step < 3; ++step) made.push_back(trainer->step(all.first(5)).loss);
    return made;
  };
  const auto found = run(GetParam().name), fp32 = run("fp32");
  expect_near(found, fp32);
  EXPECT_NE(found, fp32);
}

// Each block's sum is rounded once more, and so are the gradients on the way back.
TEST_P(Autocast, WithASixteenBitResidualIsNearFp32AndTheReference) {
  Recipe made = low();
  made.residual_dtype = GetParam().name;
  const Trained found = trained(made);
  expect_near(found.losses, trained(recipe("fp32", 3, 2)).losses);
  expect_near(found.losses, trained(made, "reference").losses);
  EXPECT_NE(found.losses, trained(low()).losses);
  EXPECT_TRUE(trained(made, "cpu", 3) == found);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Autocast, testing::Values(LowPrecision{"bf16", 3e-3}, LowPrecision{"fp16", 4e-4}),
                         [](const auto& test) { return test.param.name; });

std::unique_ptr<Trainer> three_micro_batches(bool packs) {
  const Training training{.device = "cpu", .threads = 2, .options = kAutocastGpt};
  Recipe recipe;
  recipe.precision = "bf16", recipe.batch = 3, recipe.accumulate = 3;
  PlanOptions options;
  if (!packs) options.skip = {"pack_weights"};
  return std::make_unique<Trainer>(training.model(), recipe, nullptr, options);
}

// Working copies are made again within a micro-batch; their memory must not hold any of its results.
TEST(WorkingCopiesInAutocast, OfWeightsWrittenAsTheyWereChangeNoBitAtAnyTime) {
  const TokenRows rows(9, kAutocastGpt.context, kAutocastGpt.vocabulary);
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

// Most values kept for backward have 16 bits, and the copies of the weights take less memory than that saves.
TEST(AutocastMemory, IsLessForActivations) {
  const auto bytes = [](const std::string& precision) {
    const Training training{.device = "cpu", .options = kAutocastGpt, .recipe = {.precision = precision, .batch = 32}};
    const auto trainer = training.trainer();
    const MemoryLayout& memory = trainer->plan().memory;
    return memory.of(Arena::stash) + memory.of(Arena::activations);
  };
  EXPECT_LT(static_cast<double>(bytes("bf16")), 0.75 * static_cast<double>(bytes("fp32")));
}

// Backward keeps only what enters each block.
TEST(AutocastMemory, OfRecomputedBlocksIsHalvedByASixteenBitResidual) {
  const auto bytes = [](const std::string& residual) {
    const Training training{.device = "cpu",
                            .options = {.layers = 6, .width = 32, .heads = 2, .context = 16, .vocabulary = 61},
                            .recipe = {.precision = "bf16", .residual_dtype = residual, .batch = 8, .recompute = "blocks"}};
    return training.trainer()->plan().memory.of(Arena::stash);
  };
  EXPECT_NEAR(static_cast<double>(bytes("bf16")) / static_cast<double>(bytes("fp32")), 0.5, 0.1);
}

}  // namespace
}  // namespace st
