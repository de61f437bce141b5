#include "optim/gradient_noise.h"

#include <cmath>
#include <limits>

namespace st {

void GradientNoise::add(double few, double norm_of_few, double many, double norm_of_many) {
  const double small = norm_of_few * norm_of_few, large = norm_of_many * norm_of_many;
  const double trace = (small - large) / (1 / few - 1 / many);
  const double squared_gradient = (many * large - few * small) / (many - few);
  if (!std::isfinite(trace) || !std::isfinite(squared_gradient)) return;
  trace_ = kDecay * trace_ + (1 - kDecay) * trace;
  squared_gradient_ = kDecay * squared_gradient_ + (1 - kDecay) * squared_gradient;
}

double GradientNoise::scale() const {
  if (trace_ > 0 && squared_gradient_ > 0) return trace_ / squared_gradient_;
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace st
