// Reductions over the threads of a warp and of a block, in an order that depends on the number of threads only: lanes 16, 8, 4, 2 and 1
// apart in pairs, then warps in order. Every thread gets the result. `combine` is commutative, so that all threads get the same bits.
#pragma once

#include <device/threads.h>

namespace st::cuda {

struct Sum {
  template <class T>
  DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
/// The larger one; NaN if there is one. Of zeros with two signs threads may get either.
struct Largest {
  template <class T>
  DEVICE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

/// Reduces each of `values` over the lanes of a warp. T: a number of 4 or 8 bytes. All lanes come to the same call.
template <class T, int kCount, class Combine>
DEVICE void reduce_over_warp(T (&values)[kCount], const Combine& combine) {
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2)
    for (T& value : values) value = combine(value, shuffle_xor(value, lanes));
}

/// The same over a block of kThreads, a multiple of kLanes; with kThreads == kLanes over the thread's warp, with no barrier, so that one
/// kernel can serve rows by warps and rows by blocks. Otherwise all threads of the block come to the same call.
template <int kThreads, class T, int kCount, class Combine>
DEVICE void reduce_over(T (&values)[kCount], const Combine& combine) {
  static_assert(kThreads % kLanes == 0);
  reduce_over_warp(values, combine);
  if constexpr (kThreads > kLanes) {
    constexpr int kWarps = kThreads / kLanes;
    SHARED(T, of_warps, kWarps * kCount);
    const int warp = thread_index() / kLanes;
    sync_block();  // the results before may still be read
    if (thread_index() % kLanes == 0)
      for (int i = 0; i < kCount; ++i) of_warps[warp * kCount + i] = values[i];
    sync_block();
    for (int i = 0; i < kCount; ++i) {
      values[i] = of_warps[i];
      for (int w = 1; w < kWarps; ++w) values[i] = combine(values[i], of_warps[w * kCount + i]);
    }
  }
}

template <int kThreads, class T, class Combine>
DEVICE T reduced_over(T value, const Combine& combine) {
  T values[1] = {value};
  reduce_over<kThreads>(values, combine);
  return values[0];
}

template <int kThreads, class T>
DEVICE T sum_over(T value) {
  return reduced_over<kThreads>(value, Sum{});
}
template <int kThreads, class T>
DEVICE T largest_over(T value) {
  return reduced_over<kThreads>(value, Largest{});
}

}  // namespace st::cuda
