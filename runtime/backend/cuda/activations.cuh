// The activations of products and their slopes, by the cpu's formulas (cpu/activation_vectors.h).
#pragma once

#include <cmath>

#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/exp_log.cuh"
#include "backend/cuda/fused.cuh"
#include "gemm/epilogue.h"

namespace st::cuda {

namespace activations {

DEVICE float erfc_of(float x) { return erfcf(x); }
DEVICE double erfc_of(double x) { return erfc(x); }

constexpr double kRoot2OverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;
constexpr double kRootHalf = 0.70710678118654752440;
constexpr double kDensity = 0.39894228040143267794;  // 1 / sqrt(2 pi)
constexpr double kFar = 64;                          // beyond it the slope of gelu is 0 or 1; x^2 must not overflow

/// -2u of GPT-2's formula: y = x / 2 (1 + tanh u) = x / (1 + e^(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
template <class S>
DEVICE S minus_2u(S x, S xx) {
  return x * fused(S(-2 * kRoot2OverPi * kCubic), xx, S(-2 * kRoot2OverPi));
}

template <class S>
DEVICE S gelu_slope_tanh(S x) {
  const S near = magnitude(x) < S(kFar) ? x : S(kFar), xx = near * near;
  const S e = exponential(minus_2u(x, xx)), s = S(1) / (S(1) + e);
  const S rest = e < S(1e30) ? e * s : S(1);  // 1 - s without cancellation
  const S slope = fused(S(6 * kRoot2OverPi * kCubic), xx, S(2 * kRoot2OverPi));
  return fused(near * slope, s * rest, s);
}

template <class S>
DEVICE S gelu_slope_erf(S x) {
  const S near = magnitude(x) < S(kFar) ? x : S(kFar);
  const S cdf = S(0.5) * erfc_of(x * S(-kRootHalf)), pdf = S(kDensity) * exponential(near * near * S(-0.5));
  return fused(near, pdf, cdf);
}

template <class S>
DEVICE S silu_slope(S x) {
  const S s = S(1) / (S(1) + exponential(-x));
  return fused(x * s, S(1) - s, s);
}

}  // namespace activations

template <class S>
DEVICE S activated(GemmActivation activation, S x) {
  switch (activation) {
    case GemmActivation::relu:
      return is_less(x, S(0)) ? S(0) : x;
    case GemmActivation::gelu_tanh:
      return x / (S(1) + exponential(activations::minus_2u(x, x * x)));
    case GemmActivation::gelu_erf:
      return S(0.5) * x * activations::erfc_of(x * S(-activations::kRootHalf));
    case GemmActivation::silu:
      return x / (S(1) + exponential(-x));
    default:
      return x;
  }
}

/// dy times the slope at x.
template <class S>
DEVICE S times_slope(GemmActivation activation, S x, S dy) {
  switch (activation) {
    case GemmActivation::relu:
      return is_less(S(0), x) ? dy : S(0);
    case GemmActivation::gelu_tanh:
      return dy * activations::gelu_slope_tanh(x);
    case GemmActivation::gelu_erf:
      return dy * activations::gelu_slope_erf(x);
    case GemmActivation::silu:
      return dy * activations::silu_slope(x);
    default:
      return dy;
  }
}

}  // namespace st::cuda
