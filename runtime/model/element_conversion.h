// Converts elements between floating types, through f32: rounds to nearest, ties to even; overflow becomes infinity. Equal types copy bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace st {

/// Addresses may be unaligned. Call under a FloatMode: f64 to f32 rounds by the processor's mode.
void convert_element(DType from, const std::byte* source, DType to, std::byte* target);
/// Converts contiguous elements.
void convert_elements(DType from, const std::byte* source, DType to, std::byte* target, int64_t elements);

}  // namespace st
