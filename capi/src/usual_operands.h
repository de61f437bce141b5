// The fast path for a product's arguments: arrays laid out exactly as the plan says are accepted at once. All others are checked one by one
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

  /// nullopt if a view differs from the plan's, or if C's memory may overlap another's. b NULL: B is packed.
  std::optional<GemmOperands> of(const st_view* a, const st_view* b, bool packed, const st_view* c) const;

 private:
  struct Matrix {
    st_dtype dtype;
    int64_t rows, columns;
    MatrixStrides strides;
    bool is_plain;      // NULL strides mean the same
    uintptr_t width;    // bytes per element; addresses must be multiples of it
    int64_t bytes = 0;  // from its first element to the end of its last; 0: no fast path
  };
  static Matrix matrix_of(DType type, int64_t rows, int64_t columns, MatrixStrides strides, int64_t batch);
  static bool is_usual(const Matrix& matrix, const st_view* view);

  Matrix a_, b_, c_;
};

}  // namespace st::capi
