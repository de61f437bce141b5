// Operations on a product before it leaves the cache, in this order:
//   alpha A B + beta C + bias, stored as pre_activation; activation, or times the activation's derivative; + residual; column sums.
// Each stage rounds to C's type like a separate op, so the bits equal those of separate ops.
#pragma once

#include "gemm/problem.h"

namespace st {

enum class GemmActivation : int32_t { none, relu, gelu_tanh, gelu_erf, silu };

/// A matrix of C's shape, type and batch; data null: absent. Must not overlap anything that is written.
struct GemmSide {
  void* data = nullptr;
  MatrixStrides at;
  int64_t batch = 0;
};

struct GemmEpilogue {
  GemmActivation activation = GemmActivation::none;
  GemmSide pre_activation;  // written
  GemmSide derivative_at;   // if present: multiply by the activation's derivative at these values instead
  GemmSide residual;
  /// Output, n elements of C's type: the column sums of the finished C over all rows of the batch. Blocks of 32 rows are added in fp32, the
  /// blocks in double (the order of the sum op over one column), so neither threads nor tiles change a bit.
  void* column_sums = nullptr;

  bool changes_c() const {
    return activation != GemmActivation::none || pre_activation.data != nullptr || derivative_at.data != nullptr ||
           residual.data != nullptr;
  }
};

}  // namespace st
