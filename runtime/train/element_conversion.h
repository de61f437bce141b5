// Elements of a floating type as another: round to nearest, ties to even, overflow to infinity, by way of f32. Between equal types the
// bits stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace st {

/// Neither address need be aligned. Call under a FloatMode: only f64 to f32 rounds by the processor's mode.
void convert_element(DType from, const std::byte* source, DType to, std::byte* target);
/// So many, one after the other on both sides.
void convert_elements(DType from, const std::byte* source, DType to, std::byte* target, int64_t elements);

}  // namespace st
