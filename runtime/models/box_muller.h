// Pairs of random numbers, a block of counters at a time: uniform ones from Philox, normal ones from these by Box and Muller (Annals of
// Mathematical Statistics 29, 1958). Only +, -, *, / and sqrt of doubles, which IEEE 754 rounds in one way: no libm, whose bits change
// with its version and with the machine. Every element is computed alike wherever it stands in a block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/philox.h"

namespace st {

constexpr size_t kPairs = 64;  // a block's intermediate values stay in the first cache

struct PairBlock {
  std::array<double, kPairs> first, second;
};

/// Of the counters [counter, counter + kPairs): two doubles in [0, 1) each, of 53 bits.
PairBlock uniform_pairs(const Philox& philox, uint64_t counter);

/// Pairs (a, b) of [0, 1) become r cos(2 pi b) and r sin(2 pi b), where r = sqrt(-2 log(1 - a)): each within 4 ulp of its exact value.
/// Call with the processor rounding to nearest (FloatMode).
PairBlock box_muller(const PairBlock& uniforms);

}  // namespace st
