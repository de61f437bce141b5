// The 16-bit floats as bits, and their conversion to and from fp32: round to nearest, ties to even; a NaN stays a (quiet) NaN and keeps its
// upper payload; overflow gives infinity. Integer arithmetic only: the floating-point mode has no effect, so denormals are always kept.
#pragma once

#include <bit>
#include <cstdint>

// Always inlined: files of several instruction sets include this, and the linker must not keep a copy that some machines cannot run.
#define ST_INLINE [[gnu::always_inline]] constexpr

namespace st {

ST_INLINE float f32_of_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

ST_INLINE uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>((bits >> 16) | 0x40);  // rounding could carry a NaN into infinity
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

ST_INLINE float f32_of_f16(uint16_t bits) {
  const uint32_t sign = (uint32_t{bits} & 0x8000) << 16;
  const uint32_t exponent = (uint32_t{bits} >> 10) & 31;
  const uint32_t fraction = uint32_t{bits} & 0x3FF;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | (fraction << 13) | (fraction != 0 ? 0x400000U : 0U));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  if (fraction == 0) return std::bit_cast<float>(sign);
  const auto shift = static_cast<uint32_t>(std::countl_zero(fraction)) - 21;  // a denormal of f16 is a normal number of f32
  return std::bit_cast<float>(sign | ((113 - shift) << 23) | (((fraction << shift) & 0x3FF) << 13));
}

ST_INLINE uint16_t f16_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00 | ((magnitude >> 13) & 0x3FF));
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // 65520 and above round to infinity
  if (magnitude >= 0x38800000) {  // 2^-14 and above: a normal number; the carry of rounding runs into the exponent as it should
    const uint32_t rebased = magnitude - (uint32_t{112} << 23);
    return static_cast<uint16_t>(sign | ((rebased + 0xFFF + ((rebased >> 13) & 1)) >> 13));
  }
  if (magnitude < 0x33000000) return static_cast<uint16_t>(sign);  // below half of the least denormal, 2^-25
  const uint32_t shift = 126 - (magnitude >> 23);                  // 14 to 24 bits are dropped
  const uint32_t full = (magnitude & 0x7FFFFF) | 0x800000;
  const uint32_t kept = full >> shift;
  const uint32_t rest = full & ((uint32_t{1} << shift) - 1);
  const uint32_t half = uint32_t{1} << (shift - 1);
  return static_cast<uint16_t>(sign | (kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1U : 0U)));
}

}  // namespace st

#undef ST_INLINE
