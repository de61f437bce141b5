// A matrix product as its kernels read it: C = alpha op(A) op(B) + beta C, then the stages of gemm/epilogue.h, for a batch of matrices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/walk.cuh"
#include "gemm/epilogue.h"

namespace st::cuda {

/// op(A), whose lines are its rows, or op(B), whose lines are its columns. Element k of a line is at `line * lead + k`, or at
/// `k * lead + line`.
struct Factor {
  int64_t lead = 0;
  int64_t matrix = 0;       // elements
  bool is_along_k = true;   // the elements of a line are neighbours
  bool in_vectors = false;  // vectors of 16 bytes along the neighbours are aligned
};

struct Product {
  int64_t m = 0, n = 0, k = 0;
  Factor a, b;
  float alpha = 1, beta = 0;
  bool has_slices = false;  // sum_slices.h; the launch then has shared memory for the second sums
  int64_t matrices = 1;     // of C, one after the other, row-major
  Walk<2> batch;            // over the matrices: which of A, and of B
};

/// Where the stages read and write, in C's type and layout; null: absent.
struct Stages {
  enum Place { kC, kBias, kPreActivation, kDerivativeAt, kResidual, kPlaces };
  std::byte* at[kPlaces];
  GemmActivation activation = GemmActivation::none;
  bool in_vectors = false;  // rows of C begin at 16 bytes
};

}  // namespace st::cuda
