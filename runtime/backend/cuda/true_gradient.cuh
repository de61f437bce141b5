// A gradient as an optimizer of several passes reads it, and totals of the sums that its passes leave.
#pragma once

#include <cstdint>

#include <device/threads.h>

#include "backend/cuda/block_reduce.cuh"
#include "backend/cuda/index_faults.cuh"
#include "backend/cuda/update.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

/// Whether no slot is to be written.
DEVICE bool is_halted(const IndexFaults& faults, const uint8_t* skip) { return *skip != 0 || has_fault(faults); }

struct GradientType {
  DType stored;
  float most;  // the largest magnitude of an element
};
inline float most_of_gradient(double clip_value) {
  return clip_value > 0 && clip_value < static_cast<double>(kMostGradient<float>) ? static_cast<float>(clip_value) : kMostGradient<float>;
}

template <int kEach>
DEVICE void true_gradients(float* to, const void* gradient, GradientType type, float factor, int64_t at) {
  load_gradient<kEach>(to, gradient, type.stored, at);
  for (int i = 0; i < kEach; ++i) to[i] = held(to[i] * factor, type.most);
}

/// The sum of all, in an order that depends on their number only, by the block.
DEVICE double total_of(const double* sums, int64_t count) {
  double sum = 0;
  for (int64_t i = thread_index(); i < count; i += kBlock) sum += sums[i];
  return sum_over<kBlock>(sum);
}

}  // namespace st::cuda
