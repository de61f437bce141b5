// The short way through a product's arguments: arrays that lie just as the plan says are seen at once, all others are looked at one by one
// (gemm_arguments.h), which costs more than a small product.
#pragma once

#include <scaletrain/gemm.h>

#include <cstdint>
#include <optional>

#include "gemm/gemm_kernels.h"

namespace st::capi {

class UsualOperands {
 public:
  explicit UsualOperands(const GemmProblem& problem);

  /// Nothing where one of the views is not just as the plan's, or where C's memory may be another's too. b NULL: it is packed.
  std::optional<GemmOperands> of(const st_view* a, const st_view* b, bool packed, const st_view* c) const;

 private:
  struct Matrix {
    st_dtype dtype;
    int64_t rows, columns;
    MatrixStrides strides;
    bool is_plain;      // strides NULL say the same
    uintptr_t width;    // bytes of an element, of which addresses are multiples
    int64_t bytes = 0;  // from its first element to the end of its last; 0: it has no usual view
  };
  static Matrix matrix_of(DType type, int64_t rows, int64_t columns, MatrixStrides strides, int64_t batch);
  static bool is_usual(const Matrix& matrix, const st_view* view);

  Matrix a_, b_, c_;
};

}  // namespace st::capi
