// Conversions between fp32 and 16-bit floats by the device's instructions. A NaN becomes the device's own NaN.
#pragma once

#include <cstdint>

#include <device/threads.h>

namespace st::cuda {

/// Two numbers rounded to nearest even, `low` in the lower 16 bits.
DEVICE uint32_t bf16_pair_of(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
DEVICE uint32_t f16_pair_of(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// Exact.
DEVICE float f32_of_f16(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

DEVICE uint32_t bits_of(float value) { return __float_as_uint(value); }
DEVICE float float_of_bits(uint32_t bits) { return __uint_as_float(bits); }

}  // namespace st::cuda
