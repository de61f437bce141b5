#include "train/bigram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/philox.h"

namespace st {
namespace {

using Tokens = std::vector<int32_t>;

double loss(const Tokens& train, const Tokens& validation, int64_t vocabulary) {
  return bigram_loss(std::span<const int32_t>(train), std::span<const int32_t>(validation), vocabulary);
}

TEST(Bigram, FollowsItsFormula) {
  // Train 0 1 0 1 0 0, V = 3: pairs 01 twice, 10 twice, 00 once; 0 is followed 3 times by 2 kinds, 1 twice by 1 kind.
  // q(0) = 5/9, q(1) = 3/9, q(2) = 1/9.
  const Tokens train = {0, 1, 0, 1, 0, 0};
  EXPECT_NEAR(loss(train, {0, 1}, 3), -std::log((2 + 2.0 * 3 / 9) / (3 + 2)), 1e-12);
  EXPECT_NEAR(loss(train, {1, 2}, 3), -std::log((0 + 1.0 * 1 / 9) / (2 + 1)), 1e-12);
  EXPECT_NEAR(loss(train, {2, 0}, 3), -std::log((0 + 1.0 * 5 / 9) / (0 + 1)), 1e-12);  // unseen: only the unigram
  EXPECT_NEAR(loss(train, {0, 1, 2}, 3), (loss(train, {0, 1}, 3) + loss(train, {1, 2}, 3)) / 2, 1e-12);
}

TEST(Bigram, IsAProbability) {
  const Tokens train = {3, 1, 4, 1, 5, 2, 6, 5, 3, 5};
  for (int32_t before = 0; before < 8; ++before) {
    double sum = 0;
    for (int32_t token = 0; token < 8; ++token) sum += std::exp(-loss(train, {before, token}, 8));
    EXPECT_NEAR(sum, 1, 1e-12) << before;
  }
}

TEST(Bigram, SeesWhatThePreviousTokenTellsAndNoMore) {
  Tokens cycle(10000), noise(60000);
  for (size_t i = 0; i < cycle.size(); ++i) cycle[i] = static_cast<int32_t>(i % 16);
  EXPECT_LT(loss(cycle, cycle, 16), 0.01);

  const Philox philox = philox_of(7);
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<int32_t>(philox({static_cast<uint32_t>(i), 0, 0, 0})[0] % 16);
  const Tokens train(noise.begin(), noise.begin() + 50000), validation(noise.begin() + 50000, noise.end());
  // Nothing to learn: the entropy of the source, plus the small cost of estimating 256 counts from 50,000 samples (256 / 100,000).
  EXPECT_NEAR(loss(train, validation, 16), std::log(16.0), 0.01);
}

TEST(Bigram, TakesBytes) {
  const std::vector<uint8_t> bytes = {255, 0, 255, 0};
  const Tokens tokens = {255, 0, 255, 0};
  EXPECT_EQ(bigram_loss(std::span<const uint8_t>(bytes), std::span<const uint8_t>(bytes), 256), loss(tokens, tokens, 256));
}

TEST(Bigram, RefusesWhatItCannotCount) {
  EXPECT_THROW(loss({1}, {1, 1}, 4), Error);
  EXPECT_THROW(loss({1, 1}, {}, 4), Error);
  EXPECT_THROW(loss({1, 4}, {1, 1}, 4), Error);
  EXPECT_THROW(loss({1, 1}, {-1, 1}, 4), Error);
  EXPECT_THROW(loss({0, 0}, {0, 0}, 0), Error);
}

}  // namespace
}  // namespace st
