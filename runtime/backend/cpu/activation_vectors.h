// Activations and their gradients on vectors, shared by the ops and by fused products, so that both give the same bits.
//   gelu   y = x Phi(x), exactly (erf) or by GPT-2's formula (tanh):
//          y = x / 2 (1 + tanh u) = x / (1 + e^(-2u)),  u = sqrt(2 / pi) (x + 0.044715 x^3)
//          so the tanh costs one exponential, without cancellation for negative x
//   relu   y = max(x, 0), NaN stays; dx = y > 0 ? dy : 0 (y > 0 exactly if x > 0)
//   silu   y = x s, s = 1 / (1 + e^-x); dx = dy (s + x s (1 - s))
#pragma once

#include <cmath>

#include "backend/cpu/vector_exp.h"

namespace st::cpu::ST_ISA {

constexpr double kRoot2OverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;
constexpr double kRootHalf = 0.70710678118654752440;
constexpr double kDensity = 0.39894228040143267794;  // 1 / sqrt(2 pi)

inline F32 erfc_of(const F32& x) { return xsimd::erfc(x); }
inline F64 erfc_of(const F64& x) {  // libm's, since xsimd's is off by 1e-12 in the tail
  alignas(64) double lanes[F64::size];
  x.store_aligned(lanes);
  for (double& lane : lanes) lane = std::erfc(lane);
  return F64::load_aligned(lanes);
}

struct GeluTanh {
  template <class B>
  B operator()(const B& x) const {
    using T = typename B::value_type;
    const B minus_2u = x * fma(B(T(-2 * kRoot2OverPi * kCubic)), x * x, B(T(-2 * kRoot2OverPi)));
    return x / (B(T(1)) + exp_of(minus_2u));
  }
};

struct GeluErf {
  template <class B>
  B operator()(const B& x) const {
    using T = typename B::value_type;
    return B(T(0.5)) * x * erfc_of(x * B(T(-kRootHalf)));
  }
};

struct GeluTanhBackward {
  template <class B>
  B operator()(const B& x, const B& dy) const {
    using T = typename B::value_type;
    const B near = xsimd::select(xsimd::abs(x) < B(T(64)), x, B(T(64)));  // beyond 64 the slope is 0 or 1; x^2 must not overflow
    const B xx = near * near;
    const B minus_2u = x * fma(B(T(-2 * kRoot2OverPi * kCubic)), xx, B(T(-2 * kRoot2OverPi)));
    const B e = exp_of(minus_2u), s = B(T(1)) / (B(T(1)) + e);
    const B rest = xsimd::select(e < B(T(1e30)), e * s, B(T(1)));  // 1 - s without cancellation
    const B slope = fma(B(T(6 * kRoot2OverPi * kCubic)), xx, B(T(2 * kRoot2OverPi)));
    return dy * fma(near * slope, s * rest, s);
  }
};

struct GeluErfBackward {
  template <class B>
  B operator()(const B& x, const B& dy) const {
    using T = typename B::value_type;
    const B near = xsimd::select(xsimd::abs(x) < B(T(64)), x, B(T(64)));
    const B cdf = B(T(0.5)) * erfc_of(x * B(T(-kRootHalf)));
    const B pdf = B(T(kDensity)) * exp_of(near * near * B(T(-0.5)));
    return dy * fma(near, pdf, cdf);
  }
};

struct Relu {
  template <class B>
  B operator()(const B& x) const {
    using T = typename B::value_type;
    return xsimd::select(x < B(T(0)), B(T(0)), x);
  }
};

struct ReluBackward {
  template <class B>
  B operator()(const B& y, const B& dy) const {
    using T = typename B::value_type;
    return xsimd::select(y > B(T(0)), dy, B(T(0)));
  }
};

struct Silu {
  template <class B>
  B operator()(const B& x) const {
    using T = typename B::value_type;
    return x / (B(T(1)) + exp_of(-x));
  }
};

struct SiluBackward {
  template <class B>
  B operator()(const B& x, const B& dy) const {
    using T = typename B::value_type;
    const B s = B(T(1)) / (B(T(1)) + exp_of(-x));
    return dy * fma(x * s, B(T(1)) - s, s);
  }
};

}  // namespace st::cpu::ST_ISA
