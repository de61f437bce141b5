#include "optim/gradient_noise.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/json_line.h"

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

std::string GradientNoise::state() const {
  return JsonLine().add_json("trace", json_of(trace_)).add_json("squared_gradient", json_of(squared_gradient_)).text();
}

void GradientNoise::restore(std::string_view state) {
  const Json json = parse_json(state, "gradient noise: state");
  const Json* trace = json.find("trace");
  const Json* squared = json.find("squared_gradient");
  const auto is_finite = [](const Json* value) { return value != nullptr && value->is_number() && std::isfinite(value->number()); };
  check(is_finite(trace) && is_finite(squared), "gradient noise: state must have the form {\"trace\":0.0,\"squared_gradient\":0.0}, got ",
        json.dump());
  trace_ = trace->number();
  squared_gradient_ = squared->number();
}

}  // namespace st
