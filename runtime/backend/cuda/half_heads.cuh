// Rows of heads for tensor cores: a block of 4 warps has 64 rows of scores, a warp 16, whose softmax and weights stay in registers in the
// layout of fragments. A row of heads of at most kWidth elements has kWidth columns in shared memory, of which those past the head are
// zeros. Sums over rows are made from zero for each tile of them and then added in fp32, since tensor cores cut their sums
// (half_product.cuh).
#pragma once

#include <cstdint>

#include <device/access.h>
#include <device/mma.h>

#include "backend/cuda/fragments.cuh"
#include "backend/cuda/fused.cuh"
#include "backend/cuda/halves.cuh"

namespace st::cuda {

constexpr int kHeadRows = 64, kHeadThreads = kHeadRows / kFragment * kLanes;

/// By AND, which the compiler knows not to be negative.
DEVICE int lane_index() { return thread_index() & (kLanes - 1); }
/// The first of the 16 rows of this thread's warp; the thread has scores of rows row_of(0) and row_of(1).
DEVICE int warp_row() { return (thread_index() & (kHeadThreads - kLanes)) / (kLanes / kFragment); }
DEVICE int row_of(int half) { return warp_row() + lane_index() / 4 + half * 8; }

/// A thread's scores of a row of `kColumns`, as soften() takes them.
template <int kColumns>
struct FragmentRow {
  static constexpr int kLanesEach = 4;  // threads of a row
  static constexpr int kOthersEach = kColumns / kLanesEach;
  DEVICE static int other(int i) { return i / 2 * 8 + lane_index() % kLanesEach * 2 + i % 2; }
};

DEVICE uint32_t rounded_pair(Bf16, float x, float y) { return bf16_pair_of(x, y); }
DEVICE uint32_t rounded_pair(F16, float x, float y) { return f16_pair_of(x, y); }

/// Rows of heads in shared memory.
template <int kWidth>
struct HeadTile {
  static constexpr int kPerRow = kWidth / kChunk;  // chunks

  DEVICE static int place(int row, int chunk) { return row * kPerRow + (chunk ^ (row & 7)); }

  /// Begins to copy `rows` rows of `width` elements, `step` apart; missing ones of kRows are zeros.
  template <int kRows>
  DEVICE static void read(Chunk* tile, const uint16_t* from, int64_t step, int rows, int width) {
    constexpr int kTogether = kHeadThreads / kPerRow;  // rows, a multiple of 8
    const int first = (thread_index() & (kHeadThreads - 1)) / kPerRow, chunk = thread_index() & (kPerRow - 1);
    const int end = chunk * kChunk < width ? rows : 0;
    const uint16_t* next = from + first * step + chunk * kChunk;
    Chunk* const to = tile + place(first, chunk);
    UNROLL
    for (int row = 0; row < kRows; row += kTogether, next += kTogether * step)
      copy_async(to + row * kPerRow, first + row < end ? next : from, first + row < end ? 16 : 0);
  }

  /// x[j] = the warp's rows of `own` . rows 8 j to 8 j + 7 of `others`.
  template <class T, int kOthers>
  DEVICE static void multiply(float (&x)[1][kOthers / 8][4], const Chunk* own, const Chunk* others) {
    UNROLL
    for (int j = 0; j < kOthers / 8; ++j) UNROLL
    for (int e = 0; e < 4; ++e) x[0][j][e] = 0;
    ROLLED  // so that not all fragments are in registers at once
        for (int from = 0; from < kWidth; from += 64) {
      UNROLL
      for (int k = from; k < from + 64; k += kFragment) {
        uint32_t a[1][4], b[kOthers / 8][2];
        load_a_fragment<true>(a[0], warp_row(), k, [&](int row, int chunk) { return own + place(row, chunk); });
        UNROLL
        for (int j = 0; j < kOthers / 8; j += 2)
          load_b_fragments<true>(b[j], b[j + 1], j * 8, k, [&](int row, int chunk) { return others + place(row, chunk); });
        multiply_add<half_of(T{})>(x, a, b);
      }
    }
  }

  /// Calls add(sum, product, half) for each of the sums, with the products of the warp's weights and the tile's rows.
  template <class T, int kOthers, int kParts, class Add>
  DEVICE static void add_weighted(float (&sums)[kWidth / 8][4], const uint32_t (&weights)[kParts][kOthers / kFragment][1][4],
                                  const Chunk* tile, int width, const Add& add) {
    constexpr int kTogether = 4;
    UNROLL
    for (int c = 0; c < kWidth / 8; c += kTogether) {
      if (c * 8 >= width) break;  // also keeps the fragments of later columns out of registers
      float made[1][kTogether][4] = {};
      UNROLL
      for (int k = 0; k < kOthers / kFragment; ++k) {
        uint32_t b[kTogether][2];
        UNROLL
        for (int j = 0; j < kTogether; j += 2)
          load_b_fragments<false>(b[j], b[j + 1], (c + j) * 8, k * kFragment, [&](int row, int chunk) { return tile + place(row, chunk); });
        UNROLL
        for (int part = 0; part < kParts; ++part) multiply_add<half_of(T{})>(made, weights[part][k], b);
      }
      UNROLL
      for (int j = 0; j < kTogether; ++j) UNROLL
      for (int e = 0; e < 4; ++e) sums[c + j][e] = add(sums[c + j][e], made[0][j][e], e / 2);
    }
  }

  /// This thread's part of a row of sums, times `factor`.
  template <class T>
  DEVICE static void write(const float (&sums)[kWidth / 8][4], int half, float factor, uint16_t* to, int width) {
    UNROLL
    for (int j = 0; j < kWidth / 8; ++j)
      if (j * 8 < width)
        store_vector(to + FragmentRow<kWidth>::other(2 * j), rounded_pair(T{}, sums[j][2 * half] * factor, sums[j][2 * half + 1] * factor));
  }
};

/// Scores as fragments have them, by row.
template <int kColumns>
DEVICE void split_rows(float (&rows)[2][kColumns / 4], const float (&x)[1][kColumns / 8][4]) {
  UNROLL
  for (int i = 0; i < kColumns / 4; ++i) UNROLL
  for (int half = 0; half < 2; ++half) rows[half][i] = x[0][i / 2][half * 2 + i % 2];
}

/// Rows times a factor each, rounded to T, as fragments of A. kParts = 2: then also what rounding has left of them, rounded.
template <class T, int kColumns, int kParts>
DEVICE void join_rows(uint32_t (&to)[kParts][kColumns / kFragment][1][4], const float (&rows)[2][kColumns / 4], const float (&factors)[2]) {
  UNROLL
  for (int k = 0; k < kColumns / kFragment; ++k) UNROLL
  for (int place = 0; place < 4; ++place) {
    const int half = place % 2, i = k * 4 + place / 2 * 2;
    float x = rows[half][i] * factors[half], y = rows[half][i + 1] * factors[half];
    UNROLL
    for (int part = 0; part < kParts; ++part) {
      const uint32_t pair = rounded_pair(T{}, x, y);
      to[part][k][0][place] = pair;
      x -= widen(T{static_cast<uint16_t>(pair)});
      y -= widen(T{static_cast<uint16_t>(pair >> 16)});
    }
  }
}

/// By which weights of at most 1 are multiplied before they are rounded, so that small ones are not below fp16's range.
DEVICE constexpr float weight_factor(Bf16) { return 1; }
DEVICE constexpr float weight_factor(F16) { return 4096; }

/// A power of two by which the largest number of a row becomes about 2^14; fp16 ends at 2^16.
DEVICE float row_factor(float largest) {
  const uint32_t given = bits_of(largest) >> 23, exponent = given < 27 ? 27 : given > 240 ? 240 : given;
  return float_of_bits((268 - exponent) << 23);
}
/// 1 / x.
DEVICE float inverse_power(float x) { return float_of_bits(0x7F000000 - bits_of(x)); }

}  // namespace st::cuda
