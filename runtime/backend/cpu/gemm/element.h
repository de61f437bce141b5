// The element types of products: f32, bf16 and f16.
#pragma once

#include "backend/cpu/convert.h"

namespace st::cpu::ST_ISA {

/// body(T{})
template <class Body>
void with_element(DType type, Body&& body) {
  switch (type) {
    case DType::bf16:
      return body(bf16{});
    case DType::f16:
      return body(f16{});
    default:
      return body(float{});
  }
}

}  // namespace st::cpu::ST_ISA
