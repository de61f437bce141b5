// Elementwise ops with exponentials, logarithms and powers, in the kernel of pointwise.cuh and by the cpu's formulas
// (cpu/activation_vectors.h), with the device's functions of one number: expf, logf, tanhf and erfcf, none of which -use_fast_math
// replaces. Not in pointwise.cuh, whose ops need fewer registers.
#pragma once

#include <cmath>

#include "backend/cuda/fused.cuh"
#include "backend/cuda/pointwise.cuh"

namespace st::cuda {

/// A number below the normal range is zero: functions of a library look at bits, whatever the mode.
template <class C>
DEVICE C counted(C x) {
  constexpr C kNormal = sizeof(C) == 4 ? C(0x1p-126) : C(0x1p-1022);
  return x < kNormal && x > -kNormal ? x * C(0) : x;
}

DEVICE float exp_of(float x) { return expf(x); }
DEVICE double exp_of(double x) { return exp(x); }
DEVICE float log_of(float x) { return logf(x); }
DEVICE double log_of(double x) { return log(x); }
DEVICE float tanh_of(float x) { return tanhf(x); }
DEVICE double tanh_of(double x) { return tanh(x); }
DEVICE float erfc_of(float x) { return erfcf(x); }
DEVICE double erfc_of(double x) { return erfc(x); }

constexpr double kRoot2OverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;
constexpr double kRootHalf = 0.70710678118654752440;
constexpr double kDensity = 0.39894228040143267794;  // 1 / sqrt(2 pi)
constexpr double kFar = 64;                          // beyond it the slope of gelu is 0 or 1; x^2 must not overflow

/// 1 / (1 + e^-x)
template <class C>
DEVICE C logistic(C x) {
  return C(1) / (C(1) + exp_of(-x));
}

/// -2u of GPT-2's formula, u = sqrt(2 / pi) (x + 0.044715 x^3): y = x / 2 (1 + tanh u) = x / (1 + e^(-2u)).
template <class C>
DEVICE C minus_2u(C x, C xx) {
  return x * fused(C(-2 * kRoot2OverPi * kCubic), xx, C(-2 * kRoot2OverPi));
}

template <class C>
DEVICE C gelu_slope_tanh(C x) {
  const C near = magnitude(x) < C(kFar) ? x : C(kFar), xx = near * near;
  const C e = exp_of(minus_2u(x, xx)), s = C(1) / (C(1) + e);
  const C rest = e < C(1e30) ? e * s : C(1);  // 1 - s without cancellation
  const C slope = fused(C(6 * kRoot2OverPi * kCubic), xx, C(2 * kRoot2OverPi));
  return fused(near * slope, s * rest, s);
}

template <class C>
DEVICE C gelu_slope_erf(C x) {
  const C near = magnitude(x) < C(kFar) ? x : C(kFar);
  const C cdf = C(0.5) * erfc_of(x * C(-kRootHalf)), pdf = C(kDensity) * exp_of(near * near * C(-0.5));
  return fused(near, pdf, cdf);
}

/// One input. is_exact: gelu by erf instead of tanh.
template <class T>
struct Transcendental {
  using C = Compute<T>;
  Op op;
  bool is_exact;

  template <int kEach>
  DEVICE void operator()(T (&y)[kEach], const T (&x)[kEach]) const {
    switch (op) {
      case Op::exp:
        return map(
            y, [](C v) { return exp_of(v); }, x);
      case Op::log:
        return map(
            y, [](C v) { return log_of(v); }, x);
      case Op::tanh:
        return map(
            y, [](C v) { return tanh_of(v); }, x);
      case Op::sigmoid:
        return map(
            y, [](C v) { return logistic(v); }, x);
      case Op::silu:
        return map(
            y, [](C v) { return v / (C(1) + exp_of(-v)); }, x);
      case Op::gelu:
        if (is_exact)
          return map(
              y, [](C v) { return C(0.5) * v * erfc_of(v * C(-kRootHalf)); }, x);
        return map(
            y, [](C v) { return v / (C(1) + exp_of(minus_2u(v, v * v))); }, x);
      default:
        return;
    }
  }

 private:
  template <int kEach, class F>
  DEVICE static void map(T (&y)[kEach], const F& f, const T (&x)[kEach]) {
    each(
        y, [&f](C v) { return flushed(f(counted(v))); }, x);
  }
};

/// dx = dy f'(x), for gelu and silu.
template <class T>
struct TranscendentalSlope {
  using C = Compute<T>;
  Op op;
  bool is_exact;

  template <int kEach>
  DEVICE void operator()(T (&y)[kEach], const T (&x)[kEach], const T (&dy)[kEach]) const {
    if (op == Op::silu_backward)
      return map(
          y,
          [](C v) {
            const C s = logistic(v);
            return fused(v * s, C(1) - s, s);
          },
          x, dy);
    if (is_exact)
      return map(
          y, [](C v) { return gelu_slope_erf(v); }, x, dy);
    map(
        y, [](C v) { return gelu_slope_tanh(v); }, x, dy);
  }

 private:
  template <int kEach, class F>
  DEVICE static void map(T (&y)[kEach], const F& slope, const T (&x)[kEach], const T (&dy)[kEach]) {
    each(
        y, [&slope](C v, C d) { return flushed(flushed(d) * slope(counted(v))); }, x, dy);
  }
};

/// a ^ b, by the power of fp64: that of fp32 is off by up to 4 units in the last place, the cpu's by half a unit.
template <class T>
struct Power {
  using C = Compute<T>;

  template <int kEach>
  DEVICE void operator()(T (&y)[kEach], const T (&a)[kEach], const T (&b)[kEach]) const {
    each(
        y,
        [](C base, C exponent) {
          return flushed(static_cast<C>(pow(static_cast<double>(counted(base)), static_cast<double>(counted(exponent)))));
        },
        a, b);
  }
};

}  // namespace st::cuda
