// A matrix product as a value: C = alpha * op(A) op(B) + beta * C, for one matrix or a batch. Transposes and layouts are strides.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace st {

/// Element (i, j) is at i * row + j * column elements from the start. Row-major: {columns, 1}; its transpose: {1, columns}.
struct MatrixStrides {
  int64_t row = 0, column = 1;
  MatrixStrides transposed() const { return {column, row}; }
  bool operator==(const MatrixStrides&) const = default;
};

/// op(A) is [m, k], op(B) [k, n], C [m, n]; each of `batch` matrices starts *_batch elements after the previous one (0: shared).
/// Products are summed in fp32 whatever the types; the result is rounded once. beta 0 never reads C.
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  MatrixStrides a, b, c;
  int64_t a_batch = 0, b_batch = 0, c_batch = 0;
  DType a_type = DType::f32, b_type = DType::f32, c_type = DType::f32;  // each f32, bf16 or f16
  float alpha = 1, beta = 0;
  bool bias = false;  // add a vector of n elements of C's type to every row of the finished product
  bool operator==(const GemmProblem&) const = default;
};

/// Throws invalid_argument or unsupported with `op` and the numbers: negative sizes, element types without a kernel.
void check_problem(const GemmProblem& problem, const char* op);
/// Also refuses strides that are negative, reach beyond any memory, or put two elements of a matrix, or of C's batch, in one place (a
/// leading dimension too small).
void check_layout(const GemmProblem& problem, const char* op);

/// A column-major C is the row-major C of the transposed problem and is computed as such.
bool runs_transposed(const GemmProblem& problem);
GemmProblem transposed(const GemmProblem& problem);  // C^T = B^T A^T
inline GemmProblem as_run(const GemmProblem& problem) { return runs_transposed(problem) ? transposed(problem) : problem; }

int64_t elements_of_b(const GemmProblem& problem);  // of all its matrices; of one if the batch shares it

}  // namespace st
