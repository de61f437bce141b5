// Shared by all kernels of products: the tile of C that a block computes, and what becomes of its sums.
#pragma once

#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/activations.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/product.h"
#include "backend/cuda/sum_slices.h"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

/// A block's tile of C.
struct TilePlace {
  int64_t row, column;  // of its first element
  int64_t a, b, c;      // elements before the matrices
};

/// Tiles in groups of up to 8 rows of them: blocks that run at the same time read the same lines, which the L2 cache then has.
template <int kRows, int kColumns>
DEVICE TilePlace tile_place(const Product& p) {
  constexpr int kGroup = 8;
  const int down = static_cast<int>((p.m + kRows - 1) / kRows), across = static_cast<int>((p.n + kColumns - 1) / kColumns);
  const int matrix = block_index() / (down * across), tile = block_index() - matrix * (down * across);
  const int first = tile / (kGroup * across) * kGroup, height = down - first < kGroup ? down - first : kGroup;
  const int at = tile - first * across;
  const InputPlaces<2> places = places_of(p.batch, matrix, p.matrices);
  return {int64_t{first + at % height} * kRows, int64_t{at / height} * kColumns, places.at[0] * p.a.matrix, places.at[1] * p.b.matrix,
          matrix * p.m * p.n};
}

/// A thread's second sums, of the sums of slices (kSumSlice): in the launch's shared memory, as registers have no room for them. Threads
/// have neighbouring vectors, and read none of others.
template <class S, int kVectors, int kThreads>
struct SliceSums {
  using Four = Vector<S, 4>;

  DEVICE static Four* place(int i) { return launch_shared<Four>() + i * kThreads + thread_index(); }
  DEVICE static void begin() {
    UNROLL
    for (int i = 0; i < kVectors; ++i) store_vector(place(i), Four{});
  }
  /// Adds a slice, whose sums are then zeros for the next one.
  DEVICE static void add(S (&sums)[kVectors][4]) {
    UNROLL
    for (int i = 0; i < kVectors; ++i) {
      auto total = load_vector<Four>(place(i));
      UNROLL
      for (int e = 0; e < 4; ++e) {
        total.at[e] = plus(total.at[e], sums[i][e]);
        sums[i][e] = 0;
      }
      store_vector(place(i), total);
    }
  }
  /// The last slice becomes the sum of all.
  DEVICE static void finish(S (&sums)[kVectors][4]) {
    UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const auto total = load_vector<Four>(place(i));
      UNROLL
      for (int e = 0; e < 4; ++e) sums[i][e] = plus(total.at[e], sums[i][e]);
    }
  }
};

constexpr int kEight = 8;  // columns that a thread finishes at a time

/// The first `count` of eight elements; `whole`: there are eight, aligned to 16 bytes.
template <class C>
DEVICE Vector<C, kEight> read_eight(const std::byte* from, int64_t at, int count, bool whole) {
  const C* const x = reinterpret_cast<const C*>(from) + at;
  if (whole) return load_vector<Vector<C, kEight>>(x);
  Vector<C, kEight> read{};
  UNROLL
  for (int i = 0; i < kEight; ++i)
    if (i < count) read.at[i] = x[i];
  return read;
}
template <class C>
DEVICE void write_eight(std::byte* to, int64_t at, const Vector<C, kEight>& made, int count, bool whole) {
  C* const y = reinterpret_cast<C*>(to) + at;
  if (whole) return store_vector(y, made);
  UNROLL
  for (int i = 0; i < kEight; ++i)
    if (i < count) y[i] = made.at[i];
}

template <class C, class S>
DEVICE Vector<C, kEight> narrow_eight(const S* values) {
  Vector<C, kEight> made;
  UNROLL
  for (int i = 0; i < kEight; i += 2) narrow_pair(made.at + i, values[i], values[i + 1]);
  return made;
}

/// The stages of gemm/epilogue.h for eight neighbours of a row, `count` of which are in C, from their sums, which are overwritten. Each is
/// rounded to C's type.
template <class C, class S>
DEVICE void finish_eight(const Product& p, const Stages& stages, int64_t matrix, int64_t row, int64_t column, int count, S* sums) {
  const int64_t at = matrix + row * p.n + column;
  const bool whole = stages.in_vectors && count == kEight;
  std::byte* const c = stages.at[Stages::kC];
  S values[kEight];
  UNROLL
  for (int i = 0; i < kEight; ++i) values[i] = times(S(p.alpha), sums[i]);
  if (p.beta != 0) {
    const auto before = read_eight<C>(c, at, count, whole);
    UNROLL
    for (int i = 0; i < kEight; ++i) values[i] = plus(values[i], times(S(p.beta), widen(before.at[i])));
  }
  if (stages.at[Stages::kBias] != nullptr) {
    const auto bias = read_eight<C>(stages.at[Stages::kBias], column, count, whole);
    UNROLL
    for (int i = 0; i < kEight; ++i) values[i] = plus(values[i], S(widen(bias.at[i])));
  }
  Vector<C, kEight> made = narrow_eight<C>(values);
  if (stages.at[Stages::kPreActivation] != nullptr) write_eight(stages.at[Stages::kPreActivation], at, made, count, whole);
  if (stages.activation != GemmActivation::none) {
    UNROLL
    for (int i = 0; i < kEight; ++i) sums[i] = widen(made.at[i]);
    const C* const x = reinterpret_cast<const C*>(stages.at[Stages::kDerivativeAt]);
    ROLLED  // an activation is long
        for (int i = 0; i < count; ++i) sums[i] =
            flushed(x == nullptr ? activated(stages.activation, flushed(sums[i]))
                                 : times_slope(stages.activation, flushed(S(widen(x[at + i]))), flushed(sums[i])));
    UNROLL
    for (int i = 0; i < kEight; ++i) values[i] = sums[i];
    made = narrow_eight<C>(values);
  }
  if (stages.at[Stages::kResidual] != nullptr) {
    const auto residual = read_eight<C>(stages.at[Stages::kResidual], at, count, whole);
    UNROLL
    for (int i = 0; i < kEight; ++i) values[i] = plus(S(widen(made.at[i])), S(widen(residual.at[i])));
    made = narrow_eight<C>(values);
  }
  write_eight(c, at, made, count, whole);
}

/// The same for `kRows` rows of a tile from `row` on, whose sums are in shared memory, kStride from one row to the next, by all threads of
/// the block.
template <class C, int kRows, int kColumns, int kStride, int kThreads, class S>
DEVICE void finish_rows(const Product& p, const Stages& stages, int64_t matrix, int64_t row, int64_t column, S* sums) {
  for (int i = thread_index(); i < kRows * kColumns / kEight; i += kThreads) {
    const int down = i / (kColumns / kEight), across = i % (kColumns / kEight) * kEight;
    const int64_t left = p.n - column - across;
    if (row + down < p.m && left > 0)
      finish_eight<C>(p, stages, matrix, row + down, column + across, left < kEight ? static_cast<int>(left) : kEight,
                      sums + down * kStride + across);
  }
}

}  // namespace st::cuda
