// e^x and tanh x on vectors, for every kernel that needs an exponential: one function, so that softmax, the losses and attention agree.
// xsimd's own exp ends at 88.37, a third of a binade too early.
//
// x = n ln 2 + r, |r| <= ln 2 / 2. A polynomial gives e^r, and 2^n goes into the exponent (Cody and Waite, 1980; coefficients of Cephes'
// expf, Taylor's for doubles). Error: at most 2 units in the last place over the whole range, up to 88.72 and 709.78. Infinity
// beyond, 0 for -infinity; NaN stays. 2^n is applied in two steps, so results below the normal range lose bits gradually if the
// floating-point mode keeps them; FloatMode (base/float_mode.h) flushes them to zero.
#pragma once

#include "backend/cpu/simd.h"

#define ST_VECTOR_INLINE inline __attribute__((always_inline))  // the coefficients stay in registers through a loop

namespace st::cpu::ST_ISA {

template <class T>
struct ExpRange;
template <>
struct ExpRange<float> {
  using Bits = int32_t;
  static constexpr float kMagic = 0x1.8p23F;             // adding it leaves the nearest integer in the lowest bits
  static constexpr float kHighest = 89, kLowest = -104;  // from here on: infinity, and less than half of the smallest number
  static constexpr float kLn2Upper = 0x1.62e4p-1F, kLn2Rest = 0x1.7f7d1cp-20F;
  static constexpr int kMantissa = 23, kBias = 127;
};
template <>
struct ExpRange<double> {
  using Bits = int64_t;
  static constexpr double kMagic = 0x1.8p52, kHighest = 710, kLowest = -746;
  static constexpr double kLn2Upper = 6.93145751953125e-1, kLn2Rest = 1.42860682030941723212e-6;
  static constexpr int kMantissa = 52, kBias = 1023;
};

/// y 2^n for whole n.
template <class T>
ST_VECTOR_INLINE Batch<T> scale_by_power(const Batch<T>& y, const Batch<T>& n) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>) {
    return _mm512_scalef_ps(y, n);
  } else {
    return _mm512_scalef_pd(y, n);
  }
#else
  using Range = ExpRange<T>;
  using Whole = Batch<typename Range::Bits>;
  // kMagic's own bits are shifted out.
  const auto power = [](const Batch<T>& shifted) {
    const Whole exponent = xsimd::bitwise_cast<Whole>(shifted) << Range::kMantissa;
    return xsimd::bitwise_cast<Batch<T> >(exponent + Whole(typename Range::Bits{Range::kBias} << Range::kMantissa));
  };
  const Batch<T> magic(Range::kMagic);
  const Batch<T> half = fma(n, Batch<T>(T(0.5)), magic);
  return y * power(half) * power((n - (half - magic)) + magic);
#endif
}

template <class T, size_t N>
ST_VECTOR_INLINE Batch<T> polynomial(const T (&coefficients)[N], const Batch<T>& x) {  // highest power first
  Batch<T> y(coefficients[0]);
  for (size_t i = 1; i < N; ++i) y = fma(y, x, Batch<T>(coefficients[i]));
  return y;
}

// e^r = 1 + r + r^2 p(r)
constexpr float kExpOfFloat[] = {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F,
                                 4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F};
constexpr double kExpOfDouble[] = {1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
                                   1. / 5040,       1. / 720,       1. / 120,      1. / 24,      1. / 6,      1. / 2};

template <class T>
ST_VECTOR_INLINE Batch<T> exp_of(const Batch<T>& given) {
  using Range = ExpRange<T>;
  using B = Batch<T>;
  constexpr T kPerLn2 = T(1.44269504088896340736);
  const B x = xsimd::max(B(Range::kLowest), xsimd::min(B(Range::kHighest), given));  // both return their second operand for NaN
  const B magic(Range::kMagic);
  const B n = fma(x, B(kPerLn2), magic) - magic;
  B r = fma(n, B(-Range::kLn2Upper), x);
  r = fma(n, B(-Range::kLn2Rest), r);
  B p;
  if constexpr (std::is_same_v<T, float>) {
    p = polynomial(kExpOfFloat, r);
  } else {
    p = polynomial(kExpOfDouble, r);
  }
  return scale_by_power<T>(fma(p, r * r, r) + B(T(1)), n);
}

// tanh x = x + x z p(z) near zero, z = x^2: p is a polynomial for floats, P / Q for doubles (Cephes)
constexpr float kTanhOfFloat[] = {-5.70498872745e-3F, 2.06390887954e-2F, -5.37397155531e-2F, 1.33314422036e-1F, -3.33332819422e-1F};
constexpr double kTanhAbove[] = {-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3};
constexpr double kTanhBelow[] = {1, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3};

template <class T>
Batch<T> tanh_of(const Batch<T>& x) {
  using B = Batch<T>;
  const B z = x * x, one(T(1)), two(T(2));
  B p;
  if constexpr (std::is_same_v<T, float>) {
    p = polynomial(kTanhOfFloat, z);
  } else {
    p = polynomial(kTanhAbove, z) / polynomial(kTanhBelow, z);
  }
  const B size = xsimd::abs(x);
  const B near = fma(p, size * z, size);
  const B away = one - two / (exp_of(size + size) + one);                    // 1 - 2 / infinity at the end
  return xsimd::copysign(xsimd::select(size < B(T(0.625)), near, away), x);  // -0 too
}

}  // namespace st::cpu::ST_ISA
