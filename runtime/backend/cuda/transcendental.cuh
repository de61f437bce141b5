// Elementwise ops with exponentials, logarithms and powers, in the kernel of pointwise.cuh, whose own ops need fewer registers. Activations
// are those of products (activations.cuh), so that a fused one has the same bits.
#pragma once

#include <cmath>

#include "backend/cuda/activations.cuh"
#include "backend/cuda/pointwise.cuh"

namespace st::cuda {

/// A number below the normal range is zero: functions of a library look at bits, whatever the mode.
template <class C>
DEVICE C counted(C x) {
  constexpr C kNormal = sizeof(C) == 4 ? C(0x1p-126) : C(0x1p-1022);
  return x < kNormal && x > -kNormal ? x * C(0) : x;
}

DEVICE float log_of(float x) { return logf(x); }
DEVICE double log_of(double x) { return log(x); }
DEVICE float tanh_of(float x) { return tanhf(x); }
DEVICE double tanh_of(double x) { return tanh(x); }

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
            y, [](C v) { return exponential(v); }, x);
      case Op::log:
        return map(
            y, [](C v) { return log_of(v); }, x);
      case Op::tanh:
        return map(
            y, [](C v) { return tanh_of(v); }, x);
      case Op::sigmoid:
        return map(
            y, [](C v) { return C(1) / (C(1) + exponential(-v)); }, x);
      case Op::silu:
        return map(
            y, [](C v) { return activated(GemmActivation::silu, v); }, x);
      case Op::gelu:
        if (is_exact)
          return map(
              y, [](C v) { return activated(GemmActivation::gelu_erf, v); }, x);
        return map(
            y, [](C v) { return activated(GemmActivation::gelu_tanh, v); }, x);
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
          y, [](C v, C d) { return times_slope(GemmActivation::silu, v, d); }, x, dy);
    if (is_exact)
      return map(
          y, [](C v, C d) { return times_slope(GemmActivation::gelu_erf, v, d); }, x, dy);
    map(
        y, [](C v, C d) { return times_slope(GemmActivation::gelu_tanh, v, d); }, x, dy);
  }

 private:
  template <int kEach, class F>
  DEVICE static void map(T (&y)[kEach], const F& f, const T (&x)[kEach], const T (&dy)[kEach]) {
    each(
        y, [&f](C v, C d) { return flushed(f(counted(v), flushed(d))); }, x, dy);
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
