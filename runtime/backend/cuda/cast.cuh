// y = x in another of f32, bf16 and f16, rounded to nearest even; a NaN keeps its sign and upper payload: the cpu's bits (base/float16.h).
// A thread has 8 elements, which are 16 bytes of 16-bit floats and two times 16 of fp32; the last one may have fewer, and takes them one by
// one.
#pragma once

#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/halves.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

constexpr int kCastVector = 8;

/// x and y are aligned to 16 bytes and do not overlap.
template <class To, class From>
KERNEL(kBlock)
cast_elements(To* y, const From* x, int64_t elements) {
  const int64_t first = (int64_t{block_index()} * kBlock + thread_index()) * kCastVector;
  if (first + kCastVector <= elements) {
    const auto read = load_vector<Vector<From, kCastVector>>(x + first);
    Vector<To, kCastVector> made;
    for (int i = 0; i < kCastVector; i += 2) narrow_pair(made.at + i, widen(read.at[i]), widen(read.at[i + 1]));
    store_vector(y + first, made);
    return;
  }
  for (int64_t i = first; i < elements; ++i) {
    To made[2];
    narrow_pair(made, widen(x[i]), 0.0F);
    y[i] = made[0];
  }
}

}  // namespace st::cuda
