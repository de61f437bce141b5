// Which elements dropout keeps, shared by all backends so that their masks agree. A mask bit depends only on its key and position, so every
// topology, thread and recomputation gets the same one:
//
//   key      mix(mix(seed, site), attempt): the recipe's seed, the op's site in the model, the number of step attempts
//   counter  {block low, block high, sample low, sample high}: sample is the index in the global batch; block = e / 4, e the element in
//            the sample
//   kept     when uniform_of(word e % 4) >= rate
//
// The op's attribute sample_elements is the size of a sample; 0: each slice along x's first dimension is a sample.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "base/philox.h"

namespace st {

class DropoutMask {
 public:
  DropoutMask(uint64_t seed, uint64_t site, uint64_t attempt, double rate)
      : philox_(philox_of(mix(mix(seed, site), attempt))), threshold_(threshold_of(rate)) {}

  /// The 4 random words of elements 4 block to 4 block + 3 of a sample.
  std::array<uint32_t, 4> words(uint64_t sample, uint64_t block) const {
    return philox_({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(sample),
                    static_cast<uint32_t>(sample >> 32)});
  }

  bool keeps(uint32_t word) const { return (word >> 8) >= threshold_; }

  bool keeps(uint64_t sample, uint64_t element) const { return keeps(words(sample, element / 4)[element % 4]); }

  /// uniform_of(word) >= rate in integers: kept when word >> 8 >= threshold. Exact, because scaling by 2^24 is exact.
  static uint32_t threshold_of(double rate) { return static_cast<uint32_t>(std::ceil(rate * 0x1p24)); }

 private:
  Philox philox_;
  uint32_t threshold_;
};

}  // namespace st
