// The gradient noise scale does not depend on the number of ranks: the first rank computes the first micro-batch's norm and sends it to the
// others.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "rank_group.h"
#include "rank_training.h"
#include "sanitized.h"

namespace st {
namespace {

struct Measured {
  std::vector<uint64_t> scales;  // as bits
  std::string noise, state;
  int skipped = 0;
  bool operator==(const Measured&) const = default;
};

void PrintTo(const Measured& measured, std::ostream* out) {
  *out << measured.state << ' ' << measured.noise;
  for (const uint64_t bits : measured.scales) *out << ' ' << std::bit_cast<double>(bits);
}

Measured measured_of(Trainer& trainer, int steps = 3) {
  Measured measured;
  for (int i = 0; i < steps; ++i) {
    const StepReport report = trainer.step();
    measured.scales.push_back(std::bit_cast<uint64_t>(report.gradient_noise_scale));
    measured.skipped += report.skipped ? 1 : 0;
  }
  measured.noise = trainer.training_state().gradient_noise;
  measured.state = trainer.state_digest();
  return measured;
}

Case measuring(std::vector<std::pair<std::string, std::string>> keys, int64_t micro_batches, bool ignored = false) {
  keys.emplace_back("gradient_noise_scale", "true");
  return {.name = "", .keys = std::move(keys), .micro_batches = micro_batches, .ignored = ignored};
}

TEST(NoiseOnRanks, HasTheBitsOfOneRank) {
  for (const Case& c : {measuring({}, 8), measuring({{"precision", "\"bf16\""}, {"bucket", "4096"}}, 3, true),
                        measuring({{"precision", "\"fp16\""}, {"loss_scale_initial", "8388608"}, {"recompute", "\"blocks\""}}, 5)}) {
    const Measured alone = measured_of(*training_of(c, 1).trainer(), 4);
    const bool is_fp16 = c.keys.front().second == "\"fp16\"";  // with a loss scale so high that some steps are skipped, but not all
    EXPECT_TRUE(is_fp16 ? alone.skipped > 0 && alone.skipped < 4 : alone.skipped == 0) << alone.skipped;
    for (const int64_t ranks : {2, 3})
      for (const int64_t zero : {0, 1, 2, 3}) {
        if (kSanitized && (ranks + zero) % 2 == 0) continue;
        Training training = training_of(c, ranks);
        training.recipe.zero = zero;
        EXPECT_EQ(measured_of(*training.trainer(), 4), alone) << ranks << " ranks, zero " << zero;
      }
  }
}

TEST(NoiseOnRanks, IsAnEstimateFromTheFirstStepOn) {
  const auto trainer = training_of(measuring({}, 4), 2).trainer();
  const double scale = trainer->step().gradient_noise_scale;
  EXPECT_GT(scale, 0);
}

TEST(NoiseOnRanks, OnceAStepDiffersByTheOrderOfTheSumsAlone) {
  const double alone = training_of(measuring({}, 8), 1).trainer()->step().gradient_noise_scale;
  for (const int64_t zero : {0, 2}) {
    Training training = training_of(measuring({{"reduce", "\"step\""}}, 8), 3);
    training.recipe.zero = zero;
    // The norm of the whole step enters a difference of squares of similar size.
    EXPECT_NEAR(training.trainer()->step().gradient_noise_scale / alone, 1, 1e-4) << zero;
  }
}

TEST(NoiseOnRanks, ChangesNoBitOfTheStep) {
  Training training = training_of(measuring({}, 5), 3);
  const std::string measured = measured_of(*training.trainer()).state;
  training.recipe.gradient_noise_scale = false;
  const auto plain = training.trainer();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(plain->step().gradient_noise_scale));
  EXPECT_EQ(plain->state_digest(), measured);
}

// Ranks without rows, and a first round with a short micro-batch: all run the same collectives, and the estimate is kept.
TEST(NoiseOnRanks, OfFewerRowsIsThatOfOneRank) {
  const auto outcome = [](int64_t ranks) {
    const auto trainer = training_of(measuring({}, 8), ranks).trainer(false);
    std::vector<uint64_t> scales;
    const TokenRows all(16, kTokens, kVocabulary);
    for (const int64_t rows : {16, 11, 5, 3, 2, 1})
      scales.push_back(std::bit_cast<uint64_t>(trainer->step(all.first(rows)).gradient_noise_scale));
    return scales;
  };
  const std::vector<uint64_t> alone = outcome(1);
  for (const int64_t ranks : {2, 3, 5, 8}) EXPECT_EQ(outcome(ranks), alone) << ranks;
}

TEST(NoiseOnRanks, IsKnownToEachRankOfAGroup) {
  const Case c = measuring({}, 5);
  const Measured alone = measured_of(*training_of(c, 1).trainer());
  each_of_group(3, [&](int rank, Communicator& own) {
    for (const int64_t zero : {0, 2}) {
      Training training = training_of(c, 1);
      training.recipe.zero = zero;
      EXPECT_EQ(measured_of(*in_group(training, own, nullptr, training.data())), alone) << "rank " << rank << ", zero " << zero;
    }
  });
}

}  // namespace
}  // namespace st
