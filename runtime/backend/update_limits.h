// Limits that keep an optimizer's step in the range of its parameter's type, shared by all backends. A second moment is a square: fp32 can
// represent it for gradients of 2^-63 to 2^63. A trainer skips a step with gradients that are not finite; finite ones always give a finite
// step:
//   gradient   clamped to kMostGradient for optimizers whose step does not grow with it (all but sgd)
//   epsilon    raised to kLeastEpsilon: below it a second moment may be 0, and the step would be as large as epsilon is small
//   sums       the state of adagrad and sgd is clamped to the largest finite number
#pragma once

#include <cmath>
#include <limits>

namespace st {

template <class P>
constexpr P kMostGradient = sizeof(P) == 4 ? P(0x1p63) : P(0x1p511);
template <class P>
constexpr double kLeastEpsilon = sizeof(P) == 4 ? 0x1p-56 : 0x1p-504;

/// Whether fp32 represents the factor with full precision.
inline bool is_normal_f32(double factor) {
  return std::abs(factor) >= std::numeric_limits<float>::min() && std::abs(factor) <= std::numeric_limits<float>::max();
}

}  // namespace st
