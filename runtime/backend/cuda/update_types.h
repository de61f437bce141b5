// The types that optimizers take, for their host code.
#pragma once

#include "base/dtype.h"
#include "base/error.h"
#include "ir/op.h"

namespace st::cuda {

inline bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

/// Throws unsupported for other parameters than fp32, and gradients of other types than fp32, bf16 and f16.
inline void check_update_types(Op op, DType parameter, DType gradient) {
  require(parameter == DType::f32 && (gradient == DType::f32 || is_half(gradient)), Code::unsupported, name_of(op),
          ": device cuda cannot update ", parameter, " parameters from ", gradient, " gradients; keep f32 master weights");
}

}  // namespace st::cuda
