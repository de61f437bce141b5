// A kernel for the tests of the simulated grid: copies to shared memory on their way while others are read, and the same with a fault.
#pragma once

#include <device/access.h>
#include <device/mma.h>

namespace st::cuda {

enum class CopyFault { none, no_copy_wait, no_copy_barrier, early_copy };

constexpr int kCopyThreads = 64, kCopySteps = 5;

struct alignas(16) FourNumbers {
  float at[4];
};

/// sums[t] = the sum over the steps of the first number that the next thread has copied, of x [kCopySteps, kCopyThreads, 4].
template <CopyFault kFault>
KERNEL(kCopyThreads)
sum_copies(const float* x, float* sums) {
  constexpr int kStages = 2;
  SHARED(FourNumbers, shared, kStages * kCopyThreads);
  const int mine = thread_index(), next = (thread_index() + 1) % kCopyThreads;
  const auto read = [&](int step) {
    if (step < kCopySteps) copy_async(shared + step % kStages * kCopyThreads + mine, x + (step * kCopyThreads + mine) * 4, 16);
    commit_copies();
  };
  read(0);
  float sum = 0;
  for (int step = 0; step < kCopySteps; ++step) {
    if constexpr (kFault == CopyFault::early_copy) read(step + 1);  // others may read the step before this one
    if constexpr (kFault == CopyFault::no_copy_wait) {
    } else if constexpr (kFault == CopyFault::early_copy) {
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    if constexpr (kFault != CopyFault::no_copy_barrier) sync_block();
    if constexpr (kFault != CopyFault::early_copy) read(step + 1);
    sum += shared[step % kStages * kCopyThreads + next].at[0];
  }
  sums[mine] = sum;
}

}  // namespace st::cuda
