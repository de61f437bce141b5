// C = op(A) op(B) of fp32 and fp64 by fma: a block has kRows x kColumns of C, in steps of 16 along K, and a thread 8 x 4 of them. The
// next step's elements are read into registers while this one is added, and one of two buffers in shared memory holds it. Sums over K are
// in one order, which neither m nor n nor the grid changes: blocks of 256 are added from zero, one product after the other, and the blocks
// then one after the other, where K is long in slices (sum_slices.h).
#pragma once

#include <device/outer.h>

#include "backend/cuda/product_tile.cuh"

namespace st::cuda {

constexpr int kFloatDepth = 16;  // of K, a step
constexpr int kFloatBlock = 256;
constexpr int kThreadRows = 8, kThreadColumns = 4;
template <int kRows, int kColumns>
constexpr int kFloatThreads = kRows / kThreadRows*(kColumns / kThreadColumns);

/// The part of a factor that the threads of a block read in a step: kLines lines, and zeros beyond the factor.
template <class T, int kLines, int kThreads>
struct Slab {
  static constexpr int kEach = 4, kVectors = kLines * kFloatDepth / kEach / kThreads;
  static constexpr int kStride = kLines + kEach;  // in shared memory: [K][lines], and 4 so that fewer rows share a bank
  const T* next;                                  // step's first element
  int lead, lines;
  bool is_along_k, in_vectors;
  Vector<T, kEach> vectors[kVectors];

  DEVICE Slab(const Factor& factor, const T* x, int64_t first_line, int64_t all_lines)
      : next(x + first_line * (factor.is_along_k ? factor.lead : 1)),
        lead(static_cast<int>(factor.lead)),
        lines(all_lines - first_line < kLines ? static_cast<int>(all_lines - first_line) : kLines),
        is_along_k(factor.is_along_k),
        in_vectors(factor.in_vectors) {}

  DEVICE void read(int64_t depth_left) {
    const int depth = depth_left < kFloatDepth ? static_cast<int>(depth_left) : kFloatDepth;
    const int along_end = is_along_k ? depth : lines, across_end = is_along_k ? lines : depth;
    UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const Place place(is_along_k, i);
      const int along = is_along_k ? place.k : place.line, across = is_along_k ? place.line : place.k;
      const T* const from = next + int64_t{across} * lead + along;
      vectors[i] = {};
      if (across >= across_end) continue;
      if (in_vectors && along + kEach <= along_end) {
        vectors[i] = load_vector<Vector<T, kEach>>(from);
      } else {
        UNROLL
        for (int e = 0; e < kEach; ++e)
          if (along + e < along_end) vectors[i].at[e] = from[e];
      }
    }
    next += is_along_k ? kFloatDepth : int64_t{kFloatDepth} * lead;
  }

  template <class S>
  DEVICE void write(S* shared) const {
    UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const Place place(is_along_k, i);
      Vector<S, kEach> wide;
      UNROLL
      for (int e = 0; e < kEach; ++e) wide.at[e] = flushed(widen(vectors[i].at[e]));
      if (is_along_k) {
        UNROLL
        for (int e = 0; e < kEach; ++e) shared[(place.k + e) * kStride + place.line] = wide.at[e];
      } else {
        store_vector(shared + place.k * kStride + place.line, wide);
      }
    }
  }

 private:
  struct Place {
    int line, k;
    DEVICE Place(bool is_along_k, int i) {
      const int vector = i * kThreads + thread_index();
      line = is_along_k ? vector / (kFloatDepth / kEach) : vector % (kLines / kEach) * kEach;
      k = is_along_k ? vector % (kFloatDepth / kEach) * kEach : vector / (kLines / kEach);
    }
  };
};

template <class S>
DEVICE void read_four(S* to, const S* shared) {
  const auto read = load_vector<Vector<S, 4>>(shared);
  UNROLL
  for (int i = 0; i < 4; ++i) to[i] = read.at[i];
}

template <class T, class C, int kRows, int kColumns>
KERNEL((kFloatThreads<kRows, kColumns>), (kRows == 64 && sizeof(T) < 8 ? 3 : 1))
float_product(Product p, Stages stages, const T* a, const T* b) {
  using S = Compute<T>;
  constexpr int kThreads = kFloatThreads<kRows, kColumns>, kTogether = 64;  // rows that are finished at a time
  using SlabOfA = Slab<T, kRows, kThreads>;
  using SlabOfB = Slab<T, kColumns, kThreads>;
  constexpr int kA = SlabOfA::kStride * kFloatDepth, kB = SlabOfB::kStride * kFloatDepth;
  constexpr int kBuffers = 2 * (kA + kB), kFinished = kTogether * kColumns;
  using Four = Vector<S, 4>;
  SHARED(Four, shared, (kBuffers > kFinished ? kBuffers : kFinished) / 4);
  S* const buffers = shared[0].at;

  const TilePlace tile = tile_place<kRows, kColumns>(p);
  const int first_row = thread_index() / (kColumns / kThreadColumns) * kThreadRows;
  const int first_column = thread_index() % (kColumns / kThreadColumns) * kThreadColumns;
  SlabOfA next_a(p.a, a + tile.a, tile.row, p.m);
  SlabOfB next_b(p.b, b + tile.b, tile.column, p.n);
  const auto read = [&](int64_t k) {
    next_a.read(p.k - k);
    next_b.read(p.k - k);
  };
  const auto write = [&](S* buffer) {
    next_a.write(buffer);
    next_b.write(buffer + kA);
  };

  S sums[kThreadRows][kThreadColumns] = {}, block[kThreadRows][kThreadColumns] = {};
  using OfSlices = SliceSums<S, kThreadRows, kThreads>;
  if (p.has_slices) OfSlices::begin();
  read(0);
  write(buffers);
  sync_block();
  int now = 0;
  for (int64_t k = 0; k < p.k; k += kFloatDepth, now ^= 1) {
    const bool has_next = k + kFloatDepth < p.k;
    if (has_next) read(k + kFloatDepth);
    const S* const of_a = buffers + now * (kA + kB) + first_row;
    const S* const of_b = buffers + now * (kA + kB) + kA + first_column;
    UNROLL
    for (int i = 0; i < kFloatDepth; ++i) {
      S of_row[kThreadRows], of_column[kThreadColumns];
      UNROLL
      for (int r = 0; r < kThreadRows; r += 4) read_four(of_row + r, of_a + i * SlabOfA::kStride + r);
      read_four(of_column, of_b + i * SlabOfB::kStride);
      add_outer_product(block, of_row, of_column);
    }
    if (!has_next || (k + kFloatDepth) % kFloatBlock == 0) {
      UNROLL
      for (int r = 0; r < kThreadRows; ++r) {
        UNROLL
        for (int c = 0; c < kThreadColumns; ++c) {
          sums[r][c] = plus(sums[r][c], block[r][c]);
          block[r][c] = 0;
        }
      }
      if (p.has_slices && (k + kFloatDepth) % kSumSlice == 0) OfSlices::add(sums);
    }
    if (has_next) write(buffers + (now ^ 1) * (kA + kB));
    sync_block();
  }
  if (p.has_slices) OfSlices::finish(sums);
  for (int row = 0; row < kRows; row += kTogether) {
    if (first_row >= row && first_row < row + kTogether) {
      UNROLL
      for (int r = 0; r < kThreadRows; ++r) {
        Four line;
        UNROLL
        for (int c = 0; c < kThreadColumns; ++c) line.at[c] = sums[r][c];
        store_vector(buffers + (first_row - row + r) * kColumns + first_column, line);
      }
    }
    sync_block();
    finish_rows<C, kTogether, kColumns, kColumns, kThreads>(p, stages, tile.c, tile.row + row, tile.column, buffers);
    if (row + kTogether < kRows) sync_block();
  }
}

}  // namespace st::cuda
