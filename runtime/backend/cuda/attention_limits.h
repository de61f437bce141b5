// The types that attention's kernels refuse, which plans check too.
#pragma once

#include "base/dtype.h"
#include "base/error.h"
#include "ir/op.h"

namespace st::cuda {

inline void check_attention(Op op, DType dtype) {
  require(is_floating(dtype), Code::unsupported, name_of(op), ": device cuda does not compute it in ", dtype, "; cast first");
}

}  // namespace st::cuda
