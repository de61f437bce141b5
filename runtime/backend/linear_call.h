// fused_linear, or the packing of its weight, as the matrix product of GemmKernels.
#pragma once

#include "backend/kernel_call.h"
#include "gemm/gemm_kernels.h"
#include "ir/graph.h"

namespace st {

/// The product of `rows` rows of x, of the weight's element type, and a weight [K, N] (transposed: [N, K]). attrs: those of linear,
/// fused_linear or pack; the caller says whether there is a bias.
GemmProblem linear_problem(int64_t rows, const Shape& weight, DType dtype, const Attrs& attrs, bool bias);

/// From the types of the operands, before memory is allocated. Throws unsupported for element types without a kernel.
GemmProblem linear_problem(std::span<const Type> in, const Attrs& attrs);

struct LinearCall {
  GemmProblem problem;
  GemmOperands operands;  // its epilogue is not set: before use, point it to the member below
  GemmEpilogue epilogue;

  explicit LinearCall(const Call& call);
};

}  // namespace st
