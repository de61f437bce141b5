// y = x in another of f32, bf16 and f16, rounded to nearest even; a NaN keeps its sign and upper payload: the cpu's bits (base/float16.h).
// A thread has 8 elements, which are 16 bytes of 16-bit floats and two times 16 of fp32; the last one may have fewer, and takes them one by
// one.
#pragma once

#include <device/round.h>
#include <device/threads.h>
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

constexpr int kCastVector = 8;

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

DEVICE void cast_pair(float* y, float low, float high) {
  y[0] = low;
  y[1] = high;
}
template <class To>
DEVICE void cast_pair(To* y, float low, float high) {
  const uint32_t pair = narrow(To{}, low, high);
  y[0].bits = static_cast<uint16_t>(pair);
  y[1].bits = static_cast<uint16_t>(pair >> 16);
}

/// x and y are aligned to 16 bytes and do not overlap.
template <class To, class From>
KERNEL(kBlock)
cast_elements(To* y, const From* x, int64_t elements) {
  const int64_t first = (int64_t{block_index()} * kBlock + thread_index()) * kCastVector;
  if (first + kCastVector <= elements) {
    const auto read = *reinterpret_cast<const Vector<From, kCastVector>*>(x + first);
    Vector<To, kCastVector> made;
    for (int i = 0; i < kCastVector; i += 2) cast_pair(made.at + i, widen(read.at[i]), widen(read.at[i + 1]));
    *reinterpret_cast<Vector<To, kCastVector>*>(y + first) = made;
    return;
  }
  for (int64_t i = first; i < elements; ++i) {
    To made[2];
    cast_pair(made, widen(x[i]), 0.0F);
    y[i] = made[0];
  }
}

}  // namespace st::cuda
