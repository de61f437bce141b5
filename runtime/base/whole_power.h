// Powers with whole exponents, by squaring: products alone, so that every processor, device and C library has the same bits.
#pragma once

#include <cstdint>

namespace st {

/// base^exponent. For 0 <= base <= 1 the relative error is below 2 exponent 2^-53.
constexpr double whole_power(double base, uint64_t exponent) {
  double power = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) power *= base;
    base *= base;
  }
  return power;
}

}  // namespace st
