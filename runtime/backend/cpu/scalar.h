// One element of an operand of any floating dtype: seeds, rates and counters, which kernels read once.
#pragma once

#include "backend/cpu/convert.h"

namespace st::cpu::ST_ISA {

inline double scalar_of(const Operand& x, int64_t i = 0) {
  double value = 0;
  with_type(x.dtype, [&](auto t) { value = static_cast<double>(widen(as<const decltype(t)>(x)[i])); });
  return value;
}

inline int64_t integer_of(const Operand& x, int64_t i) {
  return x.dtype == DType::i64   ? as<const int64_t>(x)[i]
         : x.dtype == DType::i32 ? as<const int32_t>(x)[i]
                                 : static_cast<int64_t>(scalar_of(x, i));
}

}  // namespace st::cpu::ST_ISA
