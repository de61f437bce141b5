// 16-bit gradients: each micro-batch's is rounded before it is added in fp32, and the sum once more, so results depend neither on the
// number of ranks nor on the ZeRO stage (traps.md, order of sums 1 and 8), and ranks send half the bytes. Neither do sums of 16 bits
// (accumulate_dtype), in which each addition is rounded.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "plan/wire_bytes.h"
#include "rank_training.h"
#include "sanitized.h"

namespace st {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

Case rounding(const char* dtype, Keys keys = {}, int64_t micro_batches = 8) {
  keys.emplace_back("gradient_dtype", dtype);
  keys.emplace_back("bucket", "20000");
  return {.name = dtype, .keys = std::move(keys), .micro_batches = micro_batches};
}

Case rounding_sums(const char* dtype, Keys keys = {}, int64_t micro_batches = 8) {
  keys.emplace_back("accumulate_dtype", dtype);
  return rounding(dtype, std::move(keys), micro_batches);
}

Training on_ranks(const Case& c, int64_t ranks, int64_t zero) {
  Training made = training_of(c, ranks);
  made.recipe.zero = zero;
  return made;
}

TEST(GradientDtype, ByMicroBatchHasTheBitsOfOneRankOnAnyNumberAndInAnyStage) {
  std::vector<Outcome> seen;
  for (const char* dtype : {"\"fp32\"", "\"bf16\"", "\"fp16\""}) {
    const Case c = rounding(dtype);
    const Outcome alone = outcome_of(*training_of(c, 1).trainer());
    EXPECT_EQ(alone.skipped, 0);
    EXPECT_EQ(std::ranges::find(seen, alone), seen.end()) << dtype << " has no effect";
    seen.push_back(alone);
    if (seen.size() == 1) continue;
    for (const int64_t ranks : {2, 3, 4})
      for (const int64_t zero : {0, 1, 2, 3}) {
        if (kSanitized && (ranks + zero) % 2 == 0) continue;
        EXPECT_EQ(outcome_of(*on_ranks(c, ranks, zero).trainer()), alone) << dtype << ", " << ranks << " ranks, zero " << zero;
      }
  }
}

TEST(SumsOf16Bits, HaveTheBitsOfOneRankOnAnyNumberAndInAnyStage) {
  for (const char* dtype : {"\"bf16\"", "\"fp16\""}) {
    const Case c = rounding_sums(dtype);
    const Outcome alone = outcome_of(*training_of(c, 1).trainer());
    EXPECT_EQ(alone.skipped, 0);
    EXPECT_NE(alone, outcome_of(*training_of(rounding(dtype), 1).trainer())) << dtype << " has no effect";
    EXPECT_LT(std::bit_cast<double>(alone.told[18]), std::bit_cast<double>(alone.told[0]) - 0.01) << "the loss";
    for (const int64_t ranks : {2, 3})
      for (const int64_t zero : {0, 1, 2, 3}) {
        if (kSanitized && (ranks + zero) % 2 == 0) continue;
        EXPECT_EQ(outcome_of(*on_ranks(c, ranks, zero).trainer()), alone) << dtype << ", " << ranks << " ranks, zero " << zero;
      }
  }
}

TEST(SumsOf16Bits, OnceAStepHaveTheSameBitsInAnyStage) {
  const Case c = rounding_sums("\"bf16\"", {{"reduce", "\"step\""}});
  const Outcome whole = outcome_of(*on_ranks(c, 3, 0).trainer());
  EXPECT_NE(whole, outcome_of(*on_ranks(rounding_sums("\"bf16\""), 3, 0).trainer()));
  for (const int64_t zero : {1, 2, 3}) EXPECT_EQ(outcome_of(*on_ranks(c, 3, zero).trainer()), whole) << "zero " << zero;
}

TEST(GradientDtype, WithAMicroBatchARankOrFewerHasTheBitsOfOneRank) {
  for (const int64_t micro_batches : {1, 2, 3}) {
    const Case c = rounding("\"bf16\"", {}, micro_batches);
    const Outcome alone = outcome_of(*training_of(c, 1).trainer());
    for (const char* reduce : {"\"micro\"", "\"step\""})
      for (const int64_t zero : {0, 1, 2, 3}) {
        if (kSanitized && (micro_batches + zero) % 2 == 0) continue;
        Case once = c;
        once.keys.emplace_back("reduce", reduce);
        EXPECT_EQ(outcome_of(*on_ranks(once, 3, zero).trainer()), alone)
            << micro_batches << " micro-batches, " << reduce << ", zero " << zero;
      }
  }
}

// 8 micro-batches on 3 ranks: in the last round one rank has none, but its sum over the rounds before is rounded and sent.
TEST(GradientDtype, OnceAStepHasTheSameBitsInAnyStage) {
  for (const char* dtype : {"\"bf16\"", "\"fp16\""})
    for (const int64_t ranks : {2, 3}) {
      const Case c = rounding(dtype, {{"reduce", "\"step\""}});
      const Outcome whole = outcome_of(*on_ranks(c, ranks, 0).trainer());
      EXPECT_NE(whole, outcome_of(*on_ranks(rounding("\"fp32\"", {{"reduce", "\"step\""}}), ranks, 0).trainer())) << dtype;
      for (const int64_t zero : {1, 2, 3}) {
        if (kSanitized && (ranks + zero) % 2 == 0) continue;
        EXPECT_EQ(outcome_of(*on_ranks(c, ranks, zero).trainer()), whole) << dtype << ", " << ranks << " ranks, zero " << zero;
      }
    }
}

TEST(GradientDtype, HasTheBitsOfOneRankWithPrecisionNoiseScaleAndFewerRows) {
  for (const auto& [precision, sums] : {std::pair{"\"bf16\"", "\"fp32\""}, std::pair{"\"fp16\"", "\"fp16\""}}) {
    const Case c =
        rounding("\"fp16\"",
                 {{"precision", precision}, {"accumulate_dtype", sums}, {"gradient_noise_scale", "true"}, {"recompute", "\"blocks\""}}, 5);
    const auto outcome = [&](int64_t ranks, int64_t zero) {
      const auto trainer = on_ranks(c, ranks, zero).trainer(false);
      Outcome steps = outcome_of_rows(*trainer, {10, 3, 7});
      steps.state += trainer->training_state().gradient_noise;
      return steps;
    };
    const Outcome alone = outcome(1, 0);
    for (const int64_t zero : {0, 1, 2, 3})
      if (!kSanitized || zero % 2 == 0) {
        EXPECT_EQ(outcome(2, zero), alone) << precision << ", zero " << zero;
      }
  }
}

std::vector<float> gradient_of(Trainer& trainer, const std::string& parameter) {
  const Shape& shape = trainer.model().slot(trainer.model().parameter_named(parameter)).type.shape;
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  trainer.gradient(parameter, plain_view("", DType::f32, shape, values.data()));
  return values;
}

// Also the sum of a tied weight's uses.
TEST(GradientDtype, LeavesTheSumInTheDtype) {
  for (const int64_t ranks : {1, 2})
    for (const int64_t zero : {0, 2}) {
      const bool is_kept = zero == 2;  // in 16 bits; the step's sum is rounded to them in any case
      Training training = on_ranks(is_kept ? rounding_sums("\"bf16\"") : rounding("\"bf16\""), ranks, zero);
      training.options.context = 8;  // then a step has 128 tokens, so that the mean over them is exact
      const auto trainer = training.trainer();
      trainer->step();
      for (const char* parameter : {"token_embedding.weight", "block.1.mlp.expand.weight", "final_norm.beta"}) {
        const std::vector<float> values = gradient_of(*trainer, parameter);
        EXPECT_TRUE(std::ranges::any_of(values, [](float value) { return value != 0; })) << parameter;
        EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return (std::bit_cast<uint32_t>(value) & 0xffffU) == 0; })) << parameter;
      }
    }
}

int64_t reduced_bytes(const Training& training) {
  const auto trainer = training.trainer();
  const std::vector<int64_t> before = trainer->sent_bytes();
  trainer->step();
  const std::vector<int64_t> after = trainer->sent_bytes();
  int64_t reduced = 0;
  for (size_t rank = 0; rank < after.size(); ++rank) {
    const WireBytes wire = wire_bytes(*trainer->plans()[rank], trainer->recipe().step_micro_batches());
    EXPECT_EQ(after[rank] - before[rank], wire.all()) << "rank " << rank;
    reduced += wire.reduce_scatter;
  }
  return reduced;
}

TEST(GradientDtype, SendsHalfTheBytesOfGradientsAsPlanned) {
  for (const char* reduce : {"\"micro\"", "\"step\""})
    for (const int64_t micro_batches : {3, 8})
      for (const int64_t zero : {0, 1, 2, 3}) {
        if (kSanitized && (micro_batches + zero) % 2 == 0) continue;
        const auto of = [&](const char* dtype) {
          return reduced_bytes(on_ranks(rounding(dtype, {{"reduce", reduce}}, micro_batches), 3, zero));
        };
        EXPECT_EQ(of("\"bf16\"") * 2, of("\"fp32\"")) << reduce << ", " << micro_batches << " micro-batches, zero " << zero;
      }
}

/// A GPT whose final norm has so large a weight that the gradient of its input, but not that of its own weight, exceeds fp16.
Outcome overflowing(const char* dtype, int64_t ranks, int64_t zero) {
  const Training training = on_ranks(rounding(dtype), ranks, zero);
  const auto model = training.model();
  const SlotId gamma = model->parameter_named("final_norm.gamma");
  std::vector<float> values(static_cast<size_t>(model->slot(gamma).type.shape.elements()), 1e8F);
  model->set(gamma, plain_view("", DType::f32, model->slot(gamma).type.shape, values.data()));
  Recipe recipe = training.recipe;
  recipe.device = training.device;
  Trainer trainer(model, recipe, training.data());
  return outcome_of(trainer, 2);
}

TEST(GradientDtype, AStepWhoseGradientOverflowsInTheRoundingIsSkippedOnAllRanks) {
  EXPECT_EQ(overflowing("\"fp32\"", 1, 0).skipped, 0);
  EXPECT_EQ(overflowing("\"bf16\"", 1, 0).skipped, 0);
  const Outcome alone = overflowing("\"fp16\"", 1, 0);
  EXPECT_EQ(alone.skipped, 2);
  for (const int64_t zero : {0, 2}) EXPECT_EQ(overflowing("\"fp16\"", 3, zero).state, alone.state) << "zero " << zero;
}

}  // namespace
}  // namespace st
