// Elements of a matrix along a row, to floats and back: type and stride are looked at once a row, so that what works on them has one copy
// for all types.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace st::cpu::ST_ISA {

/// n elements from element `first` of `data` on, `stride` apart. f32, bf16 or f16.
void read_floats(const void* data, DType type, int64_t first, int64_t stride, int64_t n, float* to);
/// Rounds to nearest even.
void write_floats(const float* from, int64_t n, void* data, DType type, int64_t first, int64_t stride);

}  // namespace st::cpu::ST_ISA
