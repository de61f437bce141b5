#include <gtest/gtest.h>

#include "backend/dropout_mask.h"

namespace st {
namespace {

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
