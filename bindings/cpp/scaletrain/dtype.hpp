// Element types of arrays.
#pragma once

#include <cstdint>

namespace scaletrain {

enum class DType : int32_t { f32 = 1, f64 = 2, bf16 = 3, f16 = 4, i32 = 5, i64 = 6, u8 = 7, boolean = 8 };

/// Bytes of one element.
inline int64_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    default:
      return 1;
  }
}

}  // namespace scaletrain
