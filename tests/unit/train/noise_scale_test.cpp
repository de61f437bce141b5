// The gradient noise scale of a training: its two norms equal those of ordinary steps over the same rows.

#include <cmath>
#include <optional>

#include "refusal.h"
#include "training.h"

namespace st {
namespace {

constexpr const char* kDevices[] = {"reference", "cpu"};

/// From the norms of a step on only the first micro-batch and of one on all rows.
double scale_by_hand(Training training, int64_t micro_batches) {
  training.recipe.gradient_noise_scale = false;
  const auto whole = training.trainer();
  training.recipe.accumulate = 1;
  const auto part = training.trainer();
  const double rows = static_cast<double>(training.recipe.batch);
  GradientNoise noise;
  noise.add(rows, part->step().grad_norm, rows * static_cast<double>(micro_batches), whole->step().grad_norm);
  return noise.scale();
}

TEST(NoiseScale, IsThatOfTheFirstMicroBatchAndTheWholeStep) {
  for (const char* device : kDevices)
    for (const char* precision : {"fp32", "bf16", "fp16"})
      for (const bool ignored : {false, true}) {
        Training training{.device = device, .recipe = {.precision = precision, .batch = 3, .accumulate = 4}, .ignored = ignored};
        training.recipe.gradient_noise_scale = true;
        const double by_hand = scale_by_hand(training, 4);
        ASSERT_GT(by_hand, 0) << "rows that tell the test nothing";
        EXPECT_NEAR(training.trainer()->step().gradient_noise_scale / by_hand, 1, 1e-6) << device << ' ' << precision << ' ' << ignored;
      }
}

TEST(NoiseScale, ChangesNoBitOfTheStep) {
  for (const char* precision : {"fp32", "fp16"}) {
    Training training{.device = "cpu", .recipe = {.precision = precision, .batch = 2, .accumulate = 3, .recompute = "blocks"}};
    const auto plain = training.trainer();
    training.recipe.gradient_noise_scale = true;
    const auto measured = training.trainer();
    training.threads = 3;
    const auto threaded = training.trainer();
    for (int step = 0; step < 3; ++step) {
      EXPECT_TRUE(std::isnan(plain->step().gradient_noise_scale));
      EXPECT_EQ(measured->step().gradient_noise_scale, threaded->step().gradient_noise_scale);
    }
    EXPECT_EQ(measured->state_digest(), plain->state_digest());
  }
}

// A change of weights between two slices makes the copies again and nothing else.
TEST(NoiseScale, ChangesNoBitWhereWeightsChangeBetweenSlices) {
  for (const char* precision : {"fp32", "bf16"}) {
    Training training{.device = "cpu", .recipe = {.precision = precision, .batch = 2, .accumulate = 3}};
    const auto digest = [&](bool measures) {
      training.recipe.gradient_noise_scale = measures;
      const auto trainer = training.trainer();
      std::optional<StepReport> done;
      for (int slice = 0; !done; ++slice) {
        if (slice < 150) {
          const WeightsGate::Writer writer(trainer->model().gate());
        }
        done = trainer->advance(0);
      }
      return trainer->state_digest();
    };
    EXPECT_EQ(digest(true), digest(false)) << precision;
  }
}

TEST(NoiseScale, PassesOverStepsThatTellNothing) {
  Training training{.device = "cpu", .recipe = {.batch = 3, .accumulate = 2}};
  training.recipe.gradient_noise_scale = true;
  const auto trainer = training.trainer(false);
  std::vector<int32_t> tokens(static_cast<size_t>(6 * training.options.context)), targets = tokens;
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(i * 5 % 17);
    targets[i] = static_cast<int32_t>(i * 3 % 17);
  }
  const auto step = [&](int64_t rows) {
    const std::vector<HostView> batch = {plain_view("tokens", DType::i32, {rows, training.options.context}, tokens.data()),
                                         plain_view("targets", DType::i32, {rows, training.options.context}, targets.data())};
    return trainer->step(batch).gradient_noise_scale;
  };
  EXPECT_TRUE(std::isnan(step(2))) << "less than one micro-batch";
  EXPECT_TRUE(std::isnan(step(3))) << "no more than one micro-batch";
  const double known = step(6);
  EXPECT_GT(known, 0);
  EXPECT_EQ(step(3), known);
  EXPECT_NE(step(4), known) << "the second micro-batch is short, and counts";
}

TEST(NoiseScale, OfOneMicroBatchIsRefused) {
  Training training{.device = "cpu", .recipe = {.batch = 8}};
  training.recipe.gradient_noise_scale = true;
  EXPECT_TRUE(refuses({"got 1 of 8 rows; use accumulate 2 or more"}, [&] { training.trainer(); }));
}

}  // namespace
}  // namespace st
