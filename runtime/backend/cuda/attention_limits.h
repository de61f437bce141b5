// The limits of attention's kernels, which plans check too.
#pragma once

#include "base/dtype.h"
#include "base/error.h"
#include "ir/op.h"

namespace st::cuda {

constexpr int64_t kMostWidth = 256;  // elements of a head

inline void check_attention(Op op, DType dtype, int64_t width) {
  require(is_floating(dtype), Code::unsupported, name_of(op), ": device cuda does not compute it in ", dtype, "; cast first");
  require(width <= kMostWidth, Code::unsupported, name_of(op), ": device cuda computes heads of at most ", kMostWidth, " elements, got ",
          width, "; use more heads, or device cpu");
}

}  // namespace st::cuda
