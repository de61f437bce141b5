// sum, mean and max over axes. Neighbouring axes that are all kept or all reduced are one (merged_axes.h), so x is [outer, n, inner]: rows
// if inner is 1, else columns; anything else is walked element by element. Long rows and columns are cut into pieces (reduce_pieces.h),
// whose results a second kernel reduces (pieces.cuh). Sums of a few elements are in fp32, those of many in fp64, so the mean of large
// numbers is finite.
#pragma once

#include <cstdint>

#include <device/threads.h>

#include "backend/cuda/pieces.cuh"
#include "backend/cuda/rows.cuh"
#include "base/shape.h"

namespace st::cuda {

/// y[r][p]: of piece p of row r. A group of threads has a piece.
template <class Reduce, class X, class Y>
KERNEL(kBlock)
reduce_rows(Group group, const X* x, int64_t rows, int64_t n, int64_t pieces, int64_t piece, double scale, Y* y) {
  using S = typename Reduce::template Sum<Compute<X>>;
  constexpr int kEach = kOfVector<X>;
  const int64_t at = group.index();
  if (at >= rows * pieces) return;
  const int64_t r = at / pieces, first = at % pieces * piece, last = first + piece < n ? first + piece : n;
  S sum = Reduce::template none<S>();
  for (int64_t i = first + int64_t{group.thread()} * kEach; i < last; i += group.threads * kEach) {
    const int count = last - i < kEach ? static_cast<int>(last - i) : kEach;
    Compute<X> own[kEach];
    read_some(own, x + r * n + i, count);
    sum = Reduce{}(sum, Reduce::of(own, count));
  }
  sum = group.reduced(sum, Reduce{});
  if (group.thread() == 0) store_scaled(y + at, sum, scale);
}

/// y[o][p][c]: of rows [p * kPieceOfColumn, ..) of columns c of x[o]. A thread has kEach neighbouring columns; warps_of_rows of the block's
/// warps, 1 or all, take rows in turn, and their results are added in order.
template <class Reduce, class X, class Y>
KERNEL(kBlock)
reduce_columns(const X* x, int64_t n, int64_t inner, int64_t pieces, int64_t piece, int warps_of_rows, double scale, Y* y) {
  using S = typename Reduce::template Sum<Compute<X>>;
  constexpr int kEach = kOfVector<X>, kWarps = kBlock / kLanes, kWide = kLanes * kEach;
  SHARED(S, of_threads, kBlock * kEach);  // [warps_of_rows][columns of the block]
  const int warp = thread_index() / kLanes, lane = thread_index() % kLanes;
  const int64_t width = kWarps / warps_of_rows * kWide, tiles = (inner + width - 1) / width;
  const int64_t op = block_index() / tiles, begin = block_index() % tiles * width;
  const int64_t o = op / pieces, first = op % pieces * piece, last = first + piece < n ? first + piece : n;
  const int64_t own = warps_of_rows == 1 ? thread_index() * kEach : lane * kEach, c = begin + own;
  const int step = warps_of_rows;
  const int64_t from = warps_of_rows == 1 ? first : first + warp;
  S sums[kEach];
  for (S& sum : sums) sum = Reduce::template none<S>();
  if (c < inner) {
    const int count = inner - c < kEach ? static_cast<int>(inner - c) : kEach;
    Compute<X> of[kEach];
    for (Compute<X>& each : of) each = Reduce::template none<Compute<X>>();
    const X* const column = x + o * n * inner + c;
    const auto take = [&](const Vector<X, kEach>& read) {
      Compute<X> row[kEach];
      widen_all(row, read);
      for (int i = 0; i < kEach; ++i) of[i] = Reduce::in_type(of[i], row[i]);
    };
    if (inner % kEach == 0 && is_aligned(column, 16)) {  // loads that do not wait for each other
      for (int64_t r = from; r < last; r += step) take(load_vector<Vector<X, kEach>>(column + r * inner));
    } else {
      for (int64_t r = from; r < last; r += step) take(load_some<kEach>(column + r * inner, count));
    }
    for (int i = 0; i < kEach; ++i) {
      sums[i] = static_cast<S>(of[i]);
      if (Reduce::kMayOverflow && !is_finite(of[i]) && i < count) {
        sums[i] = 0;
        for (int64_t r = from; r < last; r += step) sums[i] += static_cast<S>(flushed(widen(column[r * inner + i])));
      }
    }
  }
  const int64_t of_warp = warps_of_rows == 1 ? 0 : warp * width;
  for (int i = 0; i < kEach; ++i) of_threads[of_warp + own + i] = sums[i];
  sync_block();
  for (int64_t i = thread_index(); i < width && begin + i < inner; i += kBlock) {
    S sum = of_threads[i];
    for (int w = 1; w < warps_of_rows; ++w) sum = Reduce{}(sum, of_threads[w * width + i]);
    store_scaled(y + op * inner + begin + i, sum, scale);
  }
}

/// Dimensions with their strides in x.
struct Dimensions {
  int rank = 0;
  int64_t size[kMaxDims] = {};
  int64_t stride[kMaxDims] = {};

  DEVICE int64_t place(int64_t index) const {
    int64_t at = 0;
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t outer = index / size[d];
      at += (index - outer * size[d]) * stride[d];
      index = outer;
    }
    return at;
  }
};

/// y of each place of `kept` over all `elements` places of `gone`.
template <class Reduce, class X>
KERNEL(kBlock)
reduce_scattered(Group group, const X* x, Dimensions kept, Dimensions gone, int64_t results, int64_t elements, double scale, X* y) {
  using S = typename Reduce::template Sum<Compute<X>>;
  const int64_t k = group.index();
  if (k >= results) return;
  const X* const from = x + kept.place(k);
  S sum = Reduce::template none<S>();
  for (int64_t i = group.thread(); i < elements; i += group.threads)
    sum = Reduce{}(sum, static_cast<S>(flushed(widen(from[gone.place(i)]))));
  sum = group.reduced(sum, Reduce{});
  if (group.thread() == 0) store_scaled(y + k, sum, scale);
}

}  // namespace st::cuda
