// Activations and their derivatives in double precision. With Phi the normal distribution function:
//   erf   y = x Phi(x),             y' = Phi(x) + x phi(x)
//   tanh  y = x s,                  y' = s + 2 x s (1 - s) u',   s = (1 + tanh u) / 2,   u = sqrt(2 / pi) (x + 0.044715 x^3)
// s and 1 - s are computed as logistic functions, 1 / (1 + e^(-2u)) and 1 / (1 + e^(2u)), which do not cancel.
#pragma once

#include <cmath>
#include <numbers>

namespace st::reference {

constexpr double kGeluCubic = 0.044715;

inline double root_two_over_pi() { return std::sqrt(2 * std::numbers::inv_pi); }

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

inline double twice_u(double x) { return 2 * root_two_over_pi() * (x + kGeluCubic * x * x * x); }

inline double phi_below(double x) { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2); }  // erfc: no cancellation for x << 0

inline double slope_tanh(double x) {
  const double s = logistic(twice_u(x)), rest = logistic(-twice_u(x));
  return s + 2 * x * s * rest * root_two_over_pi() * (1 + 3 * kGeluCubic * x * x);
}

inline double slope_erf(double x) {
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return phi_below(x) + x * density;
}

inline double gelu_tanh(double x) { return x * logistic(twice_u(x)); }

inline double gelu_erf(double x) { return x * phi_below(x); }

inline double relu(double x) { return x < 0 ? 0 : x; }  // NaN and -0 stay as they are

inline double silu(double x) { return x / (1 + std::exp(-x)); }

inline double silu_backward(double x, double dy) {
  const double s = 1 / (1 + std::exp(-x));
  return dy * s * (1 + x * (1 - s));
}

}  // namespace st::reference
