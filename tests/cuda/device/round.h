// The same names as runtime/backend/cuda/device/round.h. NaNs are those of the device's instructions, measured on an H100 (tests/gpu).
#pragma once

#include <bit>
#include <cstdint>

#include <device/threads.h>
#include "base/float16.h"

namespace st::cuda {

inline uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }
inline float float_of_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

inline uint32_t bf16_pair_of(float low, float high) {
  const auto rounded = [](float x) { return x != x ? uint32_t{0x7FFF} : uint32_t{bf16_of(x)}; };
  return rounded(low) | rounded(high) << 16;
}
inline uint32_t f16_pair_of(float low, float high) {
  const auto rounded = [](float x) { return x != x ? uint32_t{0x7FFF} : uint32_t{f16_of(x)}; };
  return rounded(low) | rounded(high) << 16;
}
inline float f32_of_f16(uint16_t bits) { return (bits & 0x7FFF) > 0x7C00 ? float_of_bits(0x7FFFFFFF) : st::f32_of_f16(bits); }

}  // namespace st::cuda
