// Tiles of attention: kRows rows of heads in shared memory, products of two tiles, and sums of a tile's rows with weights, all in fixed
// order. kLanesEach neighbouring threads have kRowsEach rows of a tile: each has some of their scores and some columns of their sums.
//
// Heads wider than the widest tile are read in slices of its width. A block of threads has the sums of one slice; scores are products over
// all of them, in the order of the columns, which each block makes anew, so that wide heads take one pass more for each slice.
#pragma once

#include <cmath>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/attention_shape.cuh"
#include "backend/cuda/doubles.cuh"
#include "backend/cuda/exp_log.cuh"
#include "backend/cuda/fused.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

template <class C>
using Four = Vector<C, 4>;

/// Tiles of at most kColumnsOfTile elements of a head, of which kTiles share a block's memory.
template <class C, int kColumnsOfTile, int kTiles>
struct Tiling {
  static constexpr int kWidth = kColumnsOfTile;
  static constexpr int kStride = kWidth / 4 + 1;  // vectors; 16 bytes apart, rows begin in other banks
  static constexpr int rows_within(int bytes) {
    int rows = 32;
    while (kTiles * rows * kStride * static_cast<int>(sizeof(Four<C>)) > bytes) rows /= 2;
    return rows;
  }
  static constexpr int kRows = rows_within(40 << 10);
  static constexpr int kLanesEach = kRows >= 8 ? 8 : 16;
  static constexpr int kRowsEach = kRows >= 16 ? 2 : 1;
  static constexpr int kOthersEach = kRows > kLanesEach ? kRows / kLanesEach : 1;  // scores of a thread and row
  static constexpr int kThreads = kRows / kRowsEach * kLanesEach;
  static constexpr int kColumns = kWidth / 4 / kLanesEach;  // vectors of a row's sums that a thread has
  static constexpr int kVectors = kRows * kStride;          // of a tile in memory
  static constexpr int kWeightStride = kRows + 4;
  static constexpr int kWeights = kRows * kWeightStride;  // of a matrix of scores in memory

  DEVICE static int row() { return thread_index() / kLanesEach * kRowsEach; }  // the first of this thread's
  DEVICE static int lane() { return thread_index() % kLanesEach; }
  DEVICE static int other(int i) { return lane() + i * kLanesEach; }  // the row of the other tile in its score i
  DEVICE static int column(int i) { return (i * kLanesEach + lane()) * 4; }

  /// Whether a head has several slices.
  DEVICE static bool is_sliced(const AttentionShape& shape) { return kWidth == kWidestTile && shape.width > kWidth; }
  /// The columns that scores are summed over, to a whole slice.
  DEVICE static int64_t summed(const AttentionShape& shape) { return kWidth == kWidestTile ? shape.width : kWidth; }
  /// The columns of the slice from `column` on.
  DEVICE static int slice(const AttentionShape& shape, int64_t column) { return within(shape.width - column, kWidth); }
};

template <class T, class C>
DEVICE void read_elements(Four<C>& to, const void* from, int64_t at, int64_t count, bool is_aligned) {
  const T* const x = static_cast<const T*>(from) + at;
  if (is_aligned) {
    const auto read = load_vector<Vector<T, 4>>(x);
    UNROLL
    for (int i = 0; i < 4; ++i) to.at[i] = flushed(widen(read.at[i]));
    return;
  }
  UNROLL
  for (int i = 0; i < 4; ++i) to.at[i] = i < count ? flushed(widen(x[i])) : C(0);
}

/// Elements [column, column + 4) of the row at `at`; those past its end are 0.
template <class C>
DEVICE Four<C> read_four(const AttentionShape& shape, const void* from, int64_t at, int64_t column) {
  Four<C> read;
  const int64_t count = shape.width - column;
  const bool is_aligned = shape.width % 4 == 0;
  if constexpr (sizeof(C) == sizeof(double)) {
    read_elements<double>(read, from, at + column, count, is_aligned);
  } else {
    if (shape.dtype == DType::f32) read_elements<float>(read, from, at + column, count, is_aligned);
    if (shape.dtype == DType::bf16) read_elements<Bf16>(read, from, at + column, count, is_aligned);
    if (shape.dtype == DType::f16) read_elements<F16>(read, from, at + column, count, is_aligned);
  }
  return read;
}

template <class T, class C>
DEVICE void write_elements(const Four<C>& from, void* to, int64_t at, int64_t count, bool is_aligned) {
  T* const y = static_cast<T*>(to) + at;
  Vector<T, 4> made;
  UNROLL
  for (int i = 0; i < 4; i += 2) narrow_pair(made.at + i, flushed(from.at[i]), flushed(from.at[i + 1]));
  if (is_aligned) return store_vector(y, made);
  UNROLL
  for (int i = 0; i < 4; ++i)
    if (i < count) y[i] = made.at[i];
}

template <class C>
DEVICE void write_four(const AttentionShape& shape, const Four<C>& from, void* to, int64_t at, int64_t column) {
  const int64_t count = shape.width - column;
  const bool is_aligned = shape.width % 4 == 0;
  if constexpr (sizeof(C) == sizeof(double)) {
    write_elements<double>(from, to, at + column, count, is_aligned);
  } else {
    if (shape.dtype == DType::f32) write_elements<float>(from, to, at + column, count, is_aligned);
    if (shape.dtype == DType::bf16) write_elements<Bf16>(from, to, at + column, count, is_aligned);
    if (shape.dtype == DType::f16) write_elements<F16>(from, to, at + column, count, is_aligned);
  }
}

/// The slice from `column` on of `rows` rows from `at` on, `step` elements apart; missing rows are 0. A barrier must follow.
template <class Tile, class C>
DEVICE void load_tile(Four<C>* tile, const AttentionShape& shape, const void* from, int64_t at, int64_t step, int rows, int64_t column) {
  const int per_row = (Tile::slice(shape, column) + 3) / 4;
  for (int i = thread_index(); i < Tile::kRows * per_row; i += Tile::kThreads) {
    const int r = i / per_row, c = i - r * per_row;
    tile[r * Tile::kStride + c] = r < rows ? read_four<C>(shape, from, at + r * step, column + c * 4) : Four<C>{};
  }
}

/// sums[r][i] += row r of this thread's in `rows` . row other(i) of `others`, of `width` columns.
template <class Tile, class C>
DEVICE void add_products(C (&sums)[Tile::kRowsEach][Tile::kOthersEach], const Four<C>* rows, const Four<C>* others, int width) {
  const Four<C>* const left = rows + Tile::row() * Tile::kStride;
  const Four<C>* const right = others + Tile::lane() % Tile::kRows * Tile::kStride;
  const int per_row = (width + 3) / 4;
  ROLLED
  for (int c = 0; c < per_row; ++c) {
    Four<C> a[Tile::kRowsEach];
    UNROLL
    for (int r = 0; r < Tile::kRowsEach; ++r) a[r] = left[r * Tile::kStride + c];
    UNROLL
    for (int i = 0; i < Tile::kOthersEach; ++i) {
      const Four<C> b = right[i * Tile::kLanesEach * Tile::kStride + c];
      UNROLL
      for (int r = 0; r < Tile::kRowsEach; ++r) UNROLL
      for (int e = 0; e < 4; ++e) sums[r][i] = fused(a[r].at[e], b.at[e], sums[r][i]);
    }
  }
}

/// Those rows [from, to) of a tile that a row of weights counts.
struct Span {
  int from, to;
  DEVICE bool has(int i) const { return from <= i && i < to; }
};

/// sums[r] += weights[r] . tile, over the rows of the tile that count, one after the other; `width` columns.
template <class Tile, class C>
DEVICE void add_weighted(Four<C> (&sums)[Tile::kRowsEach][Tile::kColumns], const C* weights, const Four<C>* tile,
                         const Span (&spans)[Tile::kRowsEach], int width) {
  int from = spans[0].from, to = spans[0].to;
  UNROLL
  for (int r = 1; r < Tile::kRowsEach; ++r) {
    from = spans[r].from < from ? spans[r].from : from;
    to = spans[r].to > to ? spans[r].to : to;
  }
  for (int s = from; s < to; ++s) {
    C weight[Tile::kRowsEach];
    bool counts[Tile::kRowsEach];
    UNROLL
    for (int r = 0; r < Tile::kRowsEach; ++r) {
      weight[r] = weights[(Tile::row() + r) * Tile::kWeightStride + s];
      counts[r] = spans[r].has(s);
    }
    UNROLL
    for (int i = 0; i < Tile::kColumns; ++i) {
      if (Tile::column(i) >= width) continue;
      const Four<C> v = tile[s * Tile::kStride + Tile::column(i) / 4];
      UNROLL
      for (int r = 0; r < Tile::kRowsEach; ++r) UNROLL
      for (int e = 0; e < 4; ++e)
        if (counts[r]) sums[r][i].at[e] = fused(weight[r], v.at[e], sums[r][i].at[e]);
    }
  }
}

/// The columns from `column` on of a row at `at`.
template <class Tile, class C>
DEVICE void write_row(const AttentionShape& shape, const Four<C> (&sums)[Tile::kColumns], void* to, int64_t at, int64_t column) {
  UNROLL
  for (int i = 0; i < Tile::kColumns; ++i)
    if (column + Tile::column(i) < shape.width) write_four(shape, sums[i], to, at, column + Tile::column(i));
}

/// Over the threads that have a row.
template <class Tile, class C>
DEVICE C sum_of_lanes(C x) {
  UNROLL
  for (int lanes = 1; lanes < Tile::kLanesEach; lanes *= 2) x += shuffle_xor(x, lanes);
  return x;
}
template <class Tile, class C>
DEVICE C greatest_of_lanes(C x) {
  UNROLL
  for (int lanes = 1; lanes < Tile::kLanesEach; lanes *= 2) {
    const C other = shuffle_xor(x, lanes);
    x = other > x ? other : x;
  }
  return x;
}

}  // namespace st::cuda
