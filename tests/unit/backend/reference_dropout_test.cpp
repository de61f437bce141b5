#include <gtest/gtest.h>

#include <cmath>

#include "backend/dropout_mask.h"
#include "reference_run.h"

namespace st {
namespace {

Array ones(const Shape& shape) { return Array::of<float>(shape, std::vector<float>(static_cast<size_t>(shape.elements()), 1)); }

std::vector<float> dropped(const Array& x, double rate, int64_t attempt, int64_t first_sample, int64_t sample_elements, int64_t site = 3) {
  const Attrs attrs{{"rate", rate}, {"site", site}, {"seed", int64_t{42}}, {"sample_elements", sample_elements}};
  return run(Op::dropout, {x, Array::of<int64_t>({2}, {attempt, first_sample})}, attrs)[0].values<float>();
}

TEST(ReferenceDropout, KeepsOneMinusRateAndScalesTheRest) {
  const int64_t n = 200000;
  for (const double rate : {0.1, 0.5, 0.9}) {
    int64_t kept = 0;
    for (const float y : dropped(ones({n}), rate, 1, 0, n)) {
      if (y == 0) continue;
      ASSERT_EQ(y, static_cast<float>(1 / (1 - rate)));
      ++kept;
    }
    const double deviation = std::sqrt(rate * (1 - rate) / static_cast<double>(n));
    EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(n), 1 - rate, 5 * deviation) << rate;
  }
}

TEST(ReferenceDropout, KeepsEverythingAtRateZero) { EXPECT_EQ(dropped(ones({100}), 0, 1, 0, 100), std::vector<float>(100, 1)); }

TEST(ReferenceDropout, IsTheSameHoweverSamplesAreSplitOverCalls) {
  const int64_t sample = 77;  // not a multiple of the four words of a block
  const std::vector<float> whole = dropped(ones({6, 7, 11}), 0.4, 9, 10, sample);
  std::vector<float> parts = dropped(ones({2, 7, 11}), 0.4, 9, 10, sample);
  for (const float y : dropped(ones({4, 7, 11}), 0.4, 9, 12, sample)) parts.push_back(y);
  EXPECT_EQ(parts, whole);
}

TEST(ReferenceDropout, TakesSlicesOfTheFirstDimensionForSamplesUnlessTold) {
  EXPECT_EQ(dropped(ones({6, 11}), 0.4, 9, 10, 0), dropped(ones({6, 11}), 0.4, 9, 10, 11));
}

TEST(ReferenceDropout, DiffersByAttemptSiteAndSample) {
  const Array x = ones({1, 64});
  const std::vector<float> first = dropped(x, 0.5, 1, 0, 64);
  EXPECT_EQ(dropped(x, 0.5, 1, 0, 64), first);
  EXPECT_NE(dropped(x, 0.5, 2, 0, 64), first);
  EXPECT_NE(dropped(x, 0.5, 1, 1, 64), first);
  EXPECT_NE(dropped(x, 0.5, 1, int64_t{1} << 32, 64), first);
  EXPECT_NE(dropped(x, 0.5, 1, 0, 64, 4), first);
}

TEST(DropoutMask, ComparesAsUniformNumbersDo) {
  for (const double rate : {0.0, 0.1, 0.25, 1.0 / 3, 0.5, 0.999999, 0x1p-24, 1 - 0x1p-24}) {
    const DropoutMask mask(1, 2, 3, rate);
    const auto edge = static_cast<uint32_t>(rate * 0x1p24) << 8;
    for (const uint32_t word : {0U, 255U, 256U, edge - 1, edge, edge + 255, edge + 256, edge + 512, 0x80000000U, 0xFFFFFFFFU}) {
      EXPECT_EQ(mask.keeps(word), static_cast<double>(uniform_of(word)) >= rate) << rate << " " << word;
    }
  }
}

TEST(DropoutMask, IsPhiloxOfTheDocumentedKeyAndCounter) {
  const DropoutMask mask(7, 8, 9, 0.5);
  const uint64_t sample = (uint64_t{5} << 32) | 6, element = (uint64_t{3} << 34) | 14;
  const auto words = philox_of(mix(mix(7, 8), 9))({3, 3, 6, 5});  // element / 4 = 3 * 2^32 + 3, word 2
  EXPECT_EQ(mask.keeps(sample, element), uniform_of(words[2]) >= 0.5F);
  EXPECT_EQ(mask.words(sample, element / 4), words);
}

}  // namespace
}  // namespace st
