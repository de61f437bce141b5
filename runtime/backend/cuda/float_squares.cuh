// A block has a chunk of 8192 elements: each thread every 256th vector of four, then threads by reduce_over(). Squares are exact.
#pragma once

#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/block_reduce.cuh"
#include "backend/cuda/fused.cuh"
#include "backend/cuda/square_chunks.h"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

KERNEL(kBlock)
square_floats(const float* x, int64_t elements, double* sums) {
  constexpr int kEach = 4;
  const int64_t first = block_index() * kSquareChunk, end = first + kSquareChunk < elements ? first + kSquareChunk : elements;
  double sum = 0;
  for (int64_t at = first + thread_index() * kEach; at < end; at += kBlock * kEach) {
    if (at + kEach <= end) {
      const auto read = load_vector<Vector<float, kEach>>(x + at);
      for (const float each : read.at) sum = with_square(sum, each);
    } else {
      for (int64_t i = at; i < end; ++i) sum = with_square(sum, x[i]);
    }
  }
  sum = sum_over<kBlock>(sum);
  if (thread_index() == 0) sums[block_index()] = sum;
}

}  // namespace st::cuda
