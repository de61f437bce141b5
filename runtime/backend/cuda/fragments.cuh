// Operands of tensor cores: rows of 16-bit elements in chunks of 16 bytes in shared memory, and fragments of them
// (device/mma.h). place_of(row, chunk) is where a chunk is: chunks of 8 neighbouring rows should fall into different banks.
#pragma once

#include <cstdint>

#include <device/mma.h>

#include "backend/cuda/vectors.cuh"

namespace st::cuda {

constexpr int kChunk = 8;      // elements
constexpr int kFragment = 16;  // rows of A's fragment, and its depth

struct alignas(16) Chunk {
  uint16_t at[kChunk];
};

DEVICE constexpr Half half_of(Bf16) { return Half::bf16; }
DEVICE constexpr Half half_of(F16) { return Half::f16; }

/// The fragment of 16 lines of A from `line` on, and of 16 of K from `k` on, both multiples of 16, so that XOR adds to them: then addresses
/// that differ by it have most of their arithmetic in common. kAlongK: rows are lines; else rows are those of K.
template <bool kAlongK, class PlaceOf>
DEVICE void load_a_fragment(uint32_t (&to)[4], int line, int k, const PlaceOf& place_of) {
  if constexpr (kAlongK)
    load_matrices<false>(to, [&](int lane) { return place_of(line + lane % 16, k / kChunk ^ lane / 16); });
  else
    load_matrices<true>(to, [&](int lane) { return place_of(k + lane / 16 * 8 + lane % 8, line / kChunk ^ lane / 8 % 2); });
}
/// Likewise two fragments of 8 lines of B.
template <bool kAlongK, class PlaceOf>
DEVICE void load_b_fragments(uint32_t (&first)[2], uint32_t (&second)[2], int line, int k, const PlaceOf& place_of) {
  uint32_t both[4];
  if constexpr (kAlongK)
    load_matrices<false>(both, [&](int lane) { return place_of(line + lane / 16 * 8 + lane % 8, k / kChunk ^ lane / 8 % 2); });
  else
    load_matrices<true>(both, [&](int lane) { return place_of(k + lane / 8 % 2 * 8 + lane % 8, line / kChunk ^ lane / 16); });
  first[0] = both[0];
  first[1] = both[1];
  second[0] = both[2];
  second[1] = both[3];
}

}  // namespace st::cuda
