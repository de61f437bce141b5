// Sums of the columns of a matrix, as of a bias gradient: blocks of 32 rows are added one row after the other in fp32, and then the blocks
// one after the other in fp64. These are the cpu's sums (gemm/epilogue.h), whatever the grid.
#pragma once

#include <cstdint>

#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/row_blocks.h"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

constexpr int kFewThreads = 64;  // a column each: more blocks than of 256 threads

/// A thread has a column of a block of rows.
template <class T>
KERNEL(kBlock)
sum_row_blocks(const T* x, Compute<T>* sums, int64_t rows, int64_t columns) {
  const int64_t i = int64_t{block_index()} * kBlock + thread_index();
  const int64_t block = i / columns, column = i - block * columns, first = block * kRowsOfBlock;
  if (first >= rows) return;
  const int64_t end = first + kRowsOfBlock < rows ? first + kRowsOfBlock : rows;
  Compute<T> sum = 0;
  for (int64_t row = first; row < end; ++row) sum = plus(sum, widen(x[row * columns + column]));
  sums[block * columns + column] = sum;
}

template <class T>
KERNEL(kFewThreads)
add_row_blocks(const Compute<T>* sums, T* y, int64_t blocks, int64_t columns) {
  const int64_t column = int64_t{block_index()} * kFewThreads + thread_index();
  if (column >= columns) return;
  double total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += static_cast<double>(sums[block * columns + column]);
  T made[2];
  narrow_pair(made, static_cast<Compute<T>>(total), Compute<T>(0));
  y[column] = made[0];
}

}  // namespace st::cuda
