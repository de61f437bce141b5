// Reductions of the CUDA plug-in on the simulated grid: the order of their sums, the same bits for every thread.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "backend/cuda/block_reduce.cuh"
#include "simulated_kernels.h"

namespace st::cuda {
namespace {

/// The sum and the largest of each group of kGroup threads, written by every thread.
template <int kGroup, int kThreads, class T>
KERNEL(kThreads)
reduce_groups(const T* x, T* sums, T* largest) {
  const int at = block_index() * kThreads + thread_index();
  T both[2] = {x[at], 2 * x[at]};
  reduce_over<kGroup>(both, Sum{});
  sums[at] = both[1] - both[0];
  largest[at] = largest_over<kGroup>(x[at]);
}

/// As block_reduce.cuh says, one pair after the other.
template <class T>
T sum_in_order(std::vector<T> x) {
  T sum = 0;
  for (size_t warp = 0; warp < x.size(); warp += kLanes) {
    for (size_t apart = kLanes / 2; apart > 0; apart /= 2)
      for (size_t lane = 0; lane < apart; ++lane) x[warp + lane] += x[warp + lane + apart];
    sum += x[warp];
  }
  return sum;
}

class ReduceKernels : public KernelTest {
 protected:
  ReduceKernels() : KernelTest(Order::late) {}

  template <int kGroup, int kThreads, class T>
  void expect_the_order() {
    std::mt19937_64 random(kGroup);
    std::vector<T> x(3 * kThreads), sums(x.size()), largest(x.size());
    for (T& each : x) each = static_cast<T>(std::ldexp(static_cast<double>(random() % 100000) - 50000, -9));
    launch(&stream_, {3, kThreads}, reduce_groups<kGroup, kThreads, T>, x.data(), sums.data(), largest.data());
    finish();
    for (size_t at = 0; at < x.size(); ++at) {
      const auto first = x.begin() + static_cast<int64_t>(at / kGroup * kGroup);
      const std::vector<T> group(first, first + kGroup);
      ASSERT_EQ(sums[at], sum_in_order(group)) << at;
      ASSERT_EQ(largest[at], *std::ranges::max_element(group)) << at;
    }
  }
};

TEST_F(ReduceKernels, AddPairsOfLanesThenWarpsInOrder) {
  expect_the_order<32, 32, float>();
  expect_the_order<32, 128, float>();
  expect_the_order<32, 128, double>();
  expect_the_order<128, 128, float>();
  expect_the_order<256, 256, float>();
  expect_the_order<256, 256, int64_t>();
}

TEST_F(ReduceKernels, TheLargestIsNaNWhereverOneIs) {
  for (const size_t place : {0, 1, 31, 32, 100, 127}) {
    std::vector<float> x(128), sums(128), largest(128);
    x[place] = NAN;
    launch(&stream_, {1, 128}, reduce_groups<128, 128, float>, x.data(), sums.data(), largest.data());
    finish();
    for (const float each : largest) ASSERT_TRUE(std::isnan(each)) << place;
  }
}

}  // namespace
}  // namespace st::cuda
