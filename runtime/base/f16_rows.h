// Rows of f16 to fp32 and back, by the processor's instructions where it has them. Every implementation gives the bits of base/float16.h in
// any floating-point mode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace st {

/// One implementation, for tests to compare.
struct F16Implementation {
  const char* name;
  bool (*is_here)();
  void (*widen)(const std::byte* halves, std::byte* floats, int64_t n);
  void (*narrow)(const std::byte* floats, std::byte* halves, int64_t n);
};
std::span<const F16Implementation> f16_ways();  // fastest first

/// n elements at any alignment; the ranges must not overlap.
void widen_f16(const std::byte* halves, std::byte* floats, int64_t n);
/// Rounds to nearest even.
void narrow_f16(const std::byte* floats, std::byte* halves, int64_t n);

}  // namespace st
