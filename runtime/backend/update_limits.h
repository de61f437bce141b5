// Where an optimizer's step would leave the range of its parameter's type, shared by every backend. A second moment is a square: fp32 holds
// that of 2^-63 to 2^63. A trainer skips a step whose gradients are not finite; a finite one always makes a finite step:
//   gradient   of an optimizer whose step does not grow with it (all but sgd): beyond kMostGradient it counts as that
//   epsilon    below kLeastEpsilon it counts as that: there a second moment may be 0, and the step would be as long as epsilon is small
//   sums       adagrad's and sgd's state end at the largest finite number
#pragma once

#include <cmath>
#include <limits>

namespace st {

template <class P>
constexpr P kMostGradient = sizeof(P) == 4 ? P(0x1p63) : P(0x1p511);
template <class P>
constexpr double kLeastEpsilon = sizeof(P) == 4 ? 0x1p-56 : 0x1p-504;

/// Whether fp32 holds a factor, all digits of it.
inline bool is_normal_f32(double factor) {
  return std::abs(factor) >= std::numeric_limits<float>::min() && std::abs(factor) <= std::numeric_limits<float>::max();
}

}  // namespace st
