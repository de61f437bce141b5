// A fused_linear, or the packing of its weight, as the matrix product that every backend has kernels for.
#pragma once

#include "backend/backend.h"

namespace st {

/// Of so many rows of x, of the weight's element type, by a weight [K, N] (transposed: [N, K]). attrs: a linear's, fused_linear's or
/// pack's; the caller says whether there is a bias.
GemmProblem linear_problem(int64_t rows, const Shape& weight, DType dtype, const Attrs& attrs, bool bias);

/// From the types of its operands, before there is memory. Throws unsupported for element types that a product has no kernel for.
GemmProblem linear_problem(std::span<const Type> in, const Attrs& attrs);

struct LinearCall {
  GemmProblem problem;
  GemmOperands operands;  // epilogue: the one below, wherever this stands when it is used
  GemmEpilogue epilogue;

  explicit LinearCall(const Call& call);
};

}  // namespace st
