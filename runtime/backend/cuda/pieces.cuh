// The second of two launches of a reduction over rows: y[o][c] = scale * sum over pieces p of partial[o][p][c]. A block has as many columns
// as a warp has lanes; its warps take the pieces in turn, and their sums are added in order.
#pragma once

#include <cstdint>

#include <device/threads.h>

#include "backend/cuda/rows.cuh"

namespace st::cuda {

/// Sums in fp64.
struct Adding {
  template <class C>
  using Sum = double;
  template <class S>
  DEVICE static S none() {
    return 0;
  }
  DEVICE double operator()(double a, double b) const { return a + b; }
  static constexpr bool kMayOverflow = true;  // in_type(), of finite elements
  template <class C>
  DEVICE static C in_type(C a, C b) {
    return a + b;
  }
  template <int kEach, class C>
  DEVICE static double of(const C (&x)[kEach], int count) {
    return sum_of_some(x, count);
  }
};
/// The largest; NaN if there is one.
struct Choosing {
  template <class C>
  using Sum = C;
  template <class S>
  DEVICE static S none() {
    return -INFINITY;
  }
  template <class C>
  DEVICE C operator()(C a, C b) const {
    return Largest{}(a, b);
  }
  static constexpr bool kMayOverflow = false;
  template <class C>
  DEVICE static C in_type(C a, C b) {
    return Largest{}(a, b);
  }
  template <int kEach, class C>
  DEVICE static C of(const C (&x)[kEach], int count) {
    C best = -INFINITY;
    for (int i = 0; i < kEach; ++i)
      if (i < count) best = Largest{}(best, x[i]);
    return best;
  }
};

/// Stores a scaled sum, rounded to the result's type; a largest element has no scale.
template <class Y>
DEVICE void store_scaled(Y* y, double sum, double scale) {
  store_one(y, static_cast<Compute<Y>>(scale == 1 ? sum : scale * sum));
}
template <class Y>
DEVICE void store_scaled(Y* y, float largest, double /*scale*/) {
  store_one(y, static_cast<Compute<Y>>(largest));
}

/// The columns from `split` on are those of `rest`, from its first one on.
template <class Reduce, class P, class Y>
KERNEL(kBlock)
reduce_pieces(const P* partial, int64_t outer, int64_t pieces, int64_t inner, double scale, Y* y, int64_t split, Y* rest) {
  using S = typename Reduce::template Sum<P>;
  constexpr int kWarps = kBlock / kLanes;
  SHARED(S, of_warps, kWarps * kLanes);
  const int lane = thread_index() % kLanes, warp = thread_index() / kLanes;
  const int64_t tiles = (inner + kLanes - 1) / kLanes;
  const int64_t o = block_index() / tiles, c = block_index() % tiles * kLanes + lane;
  S sum = Reduce::template none<S>();
  if (c < inner)
    for (int64_t p = warp; p < pieces; p += kWarps) sum = Reduce{}(sum, static_cast<S>(partial[(o * pieces + p) * inner + c]));
  of_warps[warp * kLanes + lane] = sum;
  sync_block();
  if (warp > 0 || c >= inner || o >= outer) return;
  for (int w = 1; w < kWarps; ++w) sum = Reduce{}(sum, of_warps[w * kLanes + lane]);
  store_scaled(c < split ? y + o * split + c : rest + o * (inner - split) + c - split, sum, scale);
}

}  // namespace st::cuda
