// One block adds pairs of numbers: each thread every 256th one, then threads by reduce_over().
#pragma once

#include <cstdint>

#include <device/threads.h>

#include "backend/cuda/block_reduce.cuh"
#include "backend/cuda/doubles.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

KERNEL(kBlock)
add_pairs(const double* pairs, int64_t count_of_pairs, double* sum, double* count) {
  double sums[2] = {};
  for (int64_t i = thread_index(); i < count_of_pairs; i += kBlock)
    for (int k = 0; k < 2; ++k) sums[k] += pairs[2 * i + k];
  reduce_over<kBlock>(sums, Sum{});
  if (thread_index() != 0) return;
  *sum = flushed(sums[0]);
  *count = flushed(sums[1]);
}

}  // namespace st::cuda
