// gelu and gelu_backward. With Phi the normal distribution function:
//   erf   y = x Phi(x),             y' = Phi(x) + x phi(x)
//   tanh  y = x s,                  y' = s + 2 x s (1 - s) u',   s = (1 + tanh u) / 2,   u = sqrt(2 / pi) (x + 0.044715 x^3)
// s and 1 - s are taken as logistic functions, 1 / (1 + e^(-2u)) and 1 / (1 + e^(2u)): there nothing cancels.
#include <numbers>

#include "backend/reference/elementwise.h"

namespace st::reference {
namespace {

constexpr double kCubic = 0.044715;

double root_two_over_pi() { return std::sqrt(2 * std::numbers::inv_pi); }

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

double twice_u(double x) { return 2 * root_two_over_pi() * (x + kCubic * x * x * x); }

double phi_below(double x) { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2); }  // erfc: no cancellation for x << 0

double slope_tanh(double x) {
  const double s = logistic(twice_u(x)), rest = logistic(-twice_u(x));
  return s + 2 * x * s * rest * root_two_over_pi() * (1 + 3 * kCubic * x * x);
}

double slope_erf(double x) {
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return phi_below(x) + x * density;
}

bool is_tanh(const Call& call) { return call.attrs->word("approximate") == "tanh"; }

}  // namespace

constinit const Kernel kernel_gelu{[](const Call& call) {
  if (is_tanh(call)) return map(call, [](double x) { return x * logistic(twice_u(x)); });
  map(call, [](double x) { return x * phi_below(x); });
}};

constinit const Kernel kernel_gelu_backward{[](const Call& call) {
  if (is_tanh(call)) return map2(call, [](double x, double dy) { return dy * slope_tanh(x); });
  map2(call, [](double x, double dy) { return dy * slope_erf(x); });
}};

}  // namespace st::reference
