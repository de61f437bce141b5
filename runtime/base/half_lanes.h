// The conversions of base/float16.h with selects instead of branches, so that compilers vectorise them. They are also right where fp32
// denormals are flushed to zero (base/float_mode.h): an f16 denormal is a normal fp32 number.
#pragma once

#include <bit>
#include <cstdint>

namespace st {

inline float wide_of_bf16(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }

inline uint16_t bf16_from(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x40 : (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

inline float wide_of_f16(uint16_t h) {
  const uint32_t sign = (uint32_t{h} & 0x8000) << 16, shifted = (uint32_t{h} & 0x7FFF) << 13;
  const uint32_t exponent = shifted & 0x0F800000;
  // A denormal becomes the fraction of a number at 2^-14; subtracting 2^-14 is exact.
  const auto denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted + (uint32_t{113} << 23)) - 0x1p-14F);
  const uint32_t normal = shifted + (uint32_t{112} << 23), special = shifted | (shifted > 0x0F800000 ? 0x7FC00000 : 0x7F800000);
  return std::bit_cast<float>(sign | (exponent == 0 ? denormal : exponent == 0x0F800000 ? special : normal));
}

inline uint16_t f16_from(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7FFFFFFF;
  // Denormals of f16, below 2^-14: at 0.5 the last fraction bit of fp32 is worth 2^-24, the step of f16's denormals, so adding 0.5 rounds
  // to it.
  const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000;
  const uint32_t rebased = magnitude - (uint32_t{112} << 23);
  const uint32_t normal = (rebased + 0xFFF + ((rebased >> 13) & 1)) >> 13;
  const uint32_t special = magnitude > 0x7F800000 ? 0x7E00 | ((magnitude >> 13) & 0x3FF) : 0x7C00;
  const uint32_t finite = magnitude < 0x38800000 ? denormal : normal;
  return static_cast<uint16_t>(sign | (magnitude >= 0x47800000 ? special : finite));
}

}  // namespace st
