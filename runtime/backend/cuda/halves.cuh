// 16-bit floats as fp32 and back, with the cpu's bits (base/float16.h): rounded to nearest even; a NaN keeps its sign and upper payload.
// Other floats are computed in their own type.
#pragma once

#include <cstdint>

#include <device/round.h>
#include <device/threads.h>

#include "backend/cuda/vectors.cuh"

namespace st::cuda {

DEVICE bool is_nan(uint32_t f32_bits) { return (f32_bits & 0x7FFFFFFF) > 0x7F800000; }

DEVICE float widen(float x) { return x; }
DEVICE float widen(Bf16 x) { return float_of_bits(uint32_t{x.bits} << 16); }
DEVICE float widen(F16 x) {
  if ((x.bits & 0x7FFF) <= 0x7C00) return f32_of_f16(x.bits);
  return float_of_bits((uint32_t{x.bits} & 0x8000) << 16 | 0x7FC00000 | (uint32_t{x.bits} & 0x3FF) << 13);
}

/// The rounded numbers x and y in the lower and upper 16 bits.
DEVICE uint32_t narrow(Bf16, float x, float y) {
  const uint32_t pair = bf16_pair_of(x, y), low = bits_of(x), high = bits_of(y);
  return (is_nan(low) ? low >> 16 | 0x40 : pair & 0xFFFF) | (is_nan(high) ? (high | 0x400000) & 0xFFFF0000 : pair & 0xFFFF0000);
}
DEVICE uint32_t f16_nan(uint32_t f32_bits) { return (f32_bits >> 16 & 0x8000) | 0x7E00 | (f32_bits >> 13 & 0x3FF); }
DEVICE uint32_t narrow(F16, float x, float y) {
  const uint32_t pair = f16_pair_of(x, y), low = bits_of(x), high = bits_of(y);
  return (is_nan(low) ? f16_nan(low) : pair & 0xFFFF) | (is_nan(high) ? f16_nan(high) << 16 : pair & 0xFFFF0000);
}

DEVICE double widen(double x) { return x; }
/// The type in which T is computed.
template <class T>
using Compute = decltype(widen(T{}));

/// y[0] and y[1], rounded to their type.
template <class T>
DEVICE void narrow_pair(T* y, float first, float second) {
  const uint32_t pair = narrow(T{}, first, second);
  y[0].bits = static_cast<uint16_t>(pair);
  y[1].bits = static_cast<uint16_t>(pair >> 16);
}
DEVICE void narrow_pair(float* y, float first, float second) {
  y[0] = first;
  y[1] = second;
}
DEVICE void narrow_pair(double* y, double first, double second) {
  y[0] = first;
  y[1] = second;
}

}  // namespace st::cuda
