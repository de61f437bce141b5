// What happens to a product before it leaves the cache, in this order:
//   alpha A B + beta C + bias, kept as pre_activation; its activation, or it times the activation's derivative; + residual; column sums.
// Each stage rounds to C's type as an op of its own would, so the bits are those of the ops one after the other.
#pragma once

#include "gemm/problem.h"

namespace st {

enum class GemmActivation : int32_t { none, relu, gelu_tanh, gelu_erf, silu };

/// A matrix like C, of its type and in its batch; data null: not there. Overlaps nothing that is written.
struct GemmSide {
  void* data = nullptr;
  MatrixStrides at;
  int64_t batch = 0;
};

struct GemmEpilogue {
  GemmActivation activation = GemmActivation::none;
  GemmSide pre_activation;  // written
  GemmSide derivative_at;   // there: times the activation's derivative at these, in place of the activation
  GemmSide residual;
  /// Of n elements of C's type, written: the sums of the finished C's columns over all rows of the batch. Blocks of 32 rows are added in
  /// fp32, the blocks in double (the sum op's order, but of a single column), so neither threads nor tiles change a bit.
  void* column_sums = nullptr;

  bool changes_c() const {
    return activation != GemmActivation::none || pre_activation.data != nullptr || derivative_at.data != nullptr ||
           residual.data != nullptr;
  }
};

}  // namespace st
