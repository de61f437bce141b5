// Arithmetic with the cpu's bits, whose numbers below the normal range are zeros: of fp32 the compiler's options see to it, of fp64 no
// device has such a mode, so these functions do.
#pragma once

#include <cmath>

#include <device/round.h>
#include <device/threads.h>

namespace st::cuda {

DEVICE float flushed(float x) { return x; }
DEVICE double flushed(double x) { return x < 0x1p-1022 && x > -0x1p-1022 ? x * 0.0 : x; }

DEVICE float plus(float a, float b) { return a + b; }
DEVICE double plus(double a, double b) { return flushed(flushed(a) + flushed(b)); }

/// `result` is that of an operation, and `raised` the same 2^600 times as large. The cpu rounds as if there were no end of the range, and
/// then makes zeros of numbers below it: near 2^-1022 the device's rounding, to a multiple of 2^-1074, may differ.
DEVICE double within_range(double result, double raised) {
  return raised < 0x1p-422 && raised > -0x1p-422 ? result * 0.0 : raised * 0x1p-600;
}
DEVICE bool is_near_zero(double x) { return x <= 0x1p-1022 && x >= -0x1p-1022; }

DEVICE float times(float a, float b) { return a * b; }
DEVICE double times(double a, double b) {
  a = flushed(a);
  b = flushed(b);
  const double product = a * b;
  // If neither is zero, then a is at most 1.
  return is_near_zero(product) && a != 0 && b != 0 ? within_range(product, a * 0x1p600 * b) : product;
}

DEVICE float over(float a, float b) { return a / b; }
DEVICE double over(double a, double b) {
  a = flushed(a);
  b = flushed(b);
  const double quotient = a / b;
  // If b is finite, then a is at most 4.
  return is_near_zero(quotient) && fabs(b) < INFINITY ? within_range(quotient, a * 0x1p600 / b) : quotient;
}

DEVICE bool is_less(float a, float b) { return a < b; }
DEVICE bool is_less(double a, double b) { return flushed(a) < flushed(b); }

DEVICE float root(float x) { return sqrtf(x); }
DEVICE double root(double x) { return sqrt(flushed(x)); }

// Bits: an instruction for it would make zeros of what is below the range.
DEVICE float magnitude(float x) { return float_of_bits(bits_of(x) & 0x7FFFFFFF); }
DEVICE double magnitude(double x) { return fabs(x); }

DEVICE float negative(float x) { return float_of_bits(bits_of(x) ^ 0x80000000); }
DEVICE double negative(double x) { return -x; }

}  // namespace st::cuda
