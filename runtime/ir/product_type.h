// The element type of a product's result, from the attribute `result` of matmul, linear, fused_linear and pack.
#pragma once

#include "base/dtype.h"
#include "ir/attrs.h"

namespace st {

inline DType product_type(const Attrs& attrs, DType operands) { return attrs.word("result") == "f32" ? DType::f32 : operands; }

}  // namespace st
