// Roundings of a double to smaller types, by operations that every processor and device has alike.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace st {

/// To f32 by rounding to odd: an inexact result takes the neighbour whose last bit is 1. Rounding that to the nearest bf16 or f16 equals
/// rounding the double once, since f32 has more than two extra bits.
constexpr float odd_float_of(double value) {
  const auto nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  if (value != value || static_cast<double>(nearest) == value || (bits & 1) != 0) return nearest;
  const bool away = (static_cast<double>(nearest) > value) == (value > 0);
  return std::bit_cast<float>(away ? bits - 1 : bits + 1);
}

/// The integer part of `value`, clamped to T's range; 0 for NaN. A plain conversion is undefined outside the range.
template <class T>
constexpr T truncate_to(double value) {
  constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  if (value != value) return 0;
  if (value <= static_cast<double>(low)) return low;
  if (value >= static_cast<double>(high)) return high;
  return static_cast<T>(value);
}

}  // namespace st
