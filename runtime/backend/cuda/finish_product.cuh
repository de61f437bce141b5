// The stages after a product (gemm/epilogue.h) that a library has computed, with its bias: a thread has eight neighbours of a row, which it
// reads rounded to C's type, as separate ops would. `sums` may be C.
#pragma once

#include "backend/cuda/product_tile.cuh"

namespace st::cuda {

constexpr int kFinishThreads = 256;
constexpr int kFinishStride = kEight + 1;  // 1 so that threads fall into different banks
constexpr int kFinishFloats = kFinishThreads * kFinishStride;

template <class C>
KERNEL(kFinishThreads)
finish_product(Product p, Stages stages, const std::byte* sums) {
  const int64_t across = (p.n + kEight - 1) / kEight, eight = int64_t{block_index()} * kFinishThreads + thread_index();
  const int64_t row = eight / across, column = eight % across * kEight;
  if (row >= p.m) return;
  const int count = p.n - column < kEight ? static_cast<int>(p.n - column) : kEight;
  const auto read = read_eight<C>(sums, row * p.n + column, count, stages.in_vectors && count == kEight);
  // The rolled loop of an activation indexes the values: an array of the thread's own would be in local memory.
  SHARED(float, shared, kFinishFloats);
  float* const values = shared + thread_index() * kFinishStride;
  UNROLL
  for (int i = 0; i < kEight; ++i) values[i] = flushed(widen(read.at[i]));
  finish_eight<C>(p, stages, 0, row, column, count, values);
}

}  // namespace st::cuda
