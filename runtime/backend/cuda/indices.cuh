// Tensors of indices, i32 or i64, as kernels read them.
#pragma once

#include <cstdint>

#include <device/threads.h>

#include "backend/kernel_side.h"

namespace st::cuda {

struct Indices {
  const uint8_t* at[1];
  bool is_wide;  // i64

  DEVICE int64_t operator[](int64_t element) const {
    return is_wide ? reinterpret_cast<const int64_t*>(at[0])[element] : int64_t{reinterpret_cast<const int32_t*>(at[0])[element]};
  }
};

inline Indices indices(const Operand& x) { return {{as<const uint8_t>(x)}, x.dtype == DType::i64}; }

}  // namespace st::cuda
