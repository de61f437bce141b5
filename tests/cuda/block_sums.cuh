// Kernels for the tests of the simulated grid: sums through shared memory, shuffles, atomics and fences, and the same with a fault.
#pragma once

#include <device/threads.h>

namespace st::cuda {

enum class Fault { none, no_barrier, no_fence, no_second_barrier, barrier_for_some, lone_shuffle, same_place };

constexpr int kSumThreads = 64;

template <Fault kFault>
DEVICE float block_sum(float value) {
  SHARED(float, partial, kSumThreads / kLanes);
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) value += shuffle_xor(value, lanes);
  if constexpr (kFault != Fault::no_second_barrier) sync_block();  // the sum before may still be read
  if (thread_index() % kLanes == 0) partial[thread_index() / kLanes] = value;
  if constexpr (kFault != Fault::no_barrier) sync_block();
  float sum = 0;
  for (int warp = 0; warp < kSumThreads / kLanes; ++warp) sum += partial[warp];
  return sum;
}

/// Twice the sum of x, a number of kSumThreads for each block: each block has its own place in `sums`, and the last one to come adds them
/// in order.
template <Fault kFault>
KERNEL(kSumThreads)
sum_twice(const float* x, float* sums, unsigned* arrived, float* sum) {
  SHARED(bool, is_last, 1);
  float value = block_sum<kFault>(x[block_index() * kSumThreads + thread_index()]);
  value += block_sum<kFault>(x[block_index() * kSumThreads + thread_index()]);
  if constexpr (kFault == Fault::barrier_for_some)
    if (thread_index() < kSumThreads / 2) sync_block();
  if constexpr (kFault == Fault::lone_shuffle)
    if (thread_index() == 5) value = shuffle_xor(value, 1);
  if (thread_index() == 0) {
    sums[kFault == Fault::same_place ? 0 : block_index()] = value;
    if constexpr (kFault != Fault::no_fence) fence_device();
    is_last[0] = atomic_add(arrived, 1) == static_cast<unsigned>(grid_blocks() - 1);
    fence_device();
  }
  sync_block();
  if (!is_last[0] || thread_index() != 0) return;
  float all = 0;
  for (int block = 0; block < grid_blocks(); ++block) all += sums[block];
  *sum = all;
}

}  // namespace st::cuda
