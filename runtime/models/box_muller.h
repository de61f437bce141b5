// Pairs of random numbers, one block of counters at a time: uniform from Philox, then normal by Box and Muller (Annals of Mathematical
// Statistics 29, 1958). Uses only +, -, *, / and sqrt of doubles, which IEEE 754 rounds exactly, and no libm, whose results change with
// version and machine. An element's value does not depend on its position in a block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/philox.h"

namespace st {

constexpr size_t kPairs = 64;  // a block's intermediate values fit in the L1 cache

struct PairBlock {
  std::array<double, kPairs> first, second;
};

/// Two doubles in [0, 1) with 53 random bits for each counter in [counter, counter + kPairs).
PairBlock uniform_pairs(const Philox& philox, uint64_t counter);

/// Maps pairs (a, b) in [0, 1) to r cos(2 pi b) and r sin(2 pi b), r = sqrt(-2 log(1 - a)), each within 4 ulp of the exact value.
/// Needs round-to-nearest (FloatMode).
PairBlock box_muller(const PairBlock& uniforms);

}  // namespace st
