// Converts elements along a row of a matrix to floats and back. Type and stride are checked once per row, so that callers need only one
// copy for all types.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace st::cpu::ST_ISA {

/// n elements from element `first` of `data` on, `stride` elements apart. f32, bf16 or f16.
void read_floats(const void* data, DType type, int64_t first, int64_t stride, int64_t n, float* to);
/// Rounds to nearest even.
void write_floats(const float* from, int64_t n, void* data, DType type, int64_t first, int64_t stride);

}  // namespace st::cpu::ST_ISA
