// The formats of floating types, for tests that make their bits or count their units.
#pragma once

#include "base/dtype.h"

namespace st {

struct Format {
  int digits, exponents;  // bits of the fraction and of the exponent
};
inline Format format_of(DType dtype) {
  if (dtype == DType::f64) return {52, 11};
  if (dtype == DType::f32) return {23, 8};
  return dtype == DType::bf16 ? Format{7, 8} : Format{10, 5};
}

}  // namespace st
