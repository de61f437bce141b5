// A matmul as one tiled product, batched over leading dimensions where needed.
//
// If b is one matrix and a is not transposed, a's leading dimensions are rows like any other: [B, T, K] x [K, N] is one product of B*T
// rows. Else the leading dimensions with constant strides in a and b become the product's batch; the remaining ones are an outer loop.
#pragma once

#include <array>

#include "base/shape.h"
#include "gemm/problem.h"
#include "ir/attrs.h"

namespace st::cpu {

struct MatmulBatches {
  GemmProblem problem;
  int32_t rank = 0;                                     // of the outer loop
  std::array<int64_t, kMaxDims> size{}, a{}, b{}, c{};  // innermost first; strides in elements
};

MatmulBatches matmul_batches(const Shape& a, DType a_type, const Shape& b, DType b_type, const Shape& c, DType c_type, const Attrs& attrs);

}  // namespace st::cpu
