#include "parts/scaled_step.h"

#include <array>

#include "base/error.h"

namespace st {

void ScaledStep::require_turn(const char* call, bool its_turn) const {
  constexpr std::array<const char*, 4> kLast = {"update, or the scaler is new", "scale", "unscale", "step"};
  require(its_turn, Code::wrong_state, "loss_scaler: ", call, " is out of order, the last call was ", kLast[static_cast<size_t>(done_)],
          "; the order in a step is scale, backward, unscale, clip, step, update; restore starts a new step");
}

double ScaledStep::scale() {
  require_turn("scale", done_ == Done::nothing || done_ == Done::scale);
  done_ = Done::scale;
  return scaler_.scale();
}

bool ScaledStep::unscale(std::span<const GradientArray> gradients) {
  require_turn("unscale", done_ == Done::scale);
  check(!gradients.empty(), "loss_scaler: unscale needs at least one gradient, got none; give all gradients of the step in one call");
  for (size_t i = 0; i < gradients.size(); ++i)
    check(is_floating(gradients[i].dtype), "loss_scaler: gradient ", i, " must be f32, f64, bf16 or f16, got ", gradients[i].dtype);
  finite_ = true;
  const double inverse = 1 / scaler_.scale();
  for (const GradientArray& gradient : gradients)
    if (!st::unscale(gradient, inverse, *workers_)) finite_ = false;
  done_ = Done::unscale;
  return finite_;
}

bool ScaledStep::step() {
  require_turn("step", done_ == Done::unscale);
  done_ = Done::step;
  return finite_;
}

void ScaledStep::step_by(const std::function<bool(double)>& optimizer) {
  require_turn("a scaled step", done_ == Done::scale);
  finite_ = optimizer(scaler_.scale());
  done_ = Done::step;
}

bool ScaledStep::update() {
  require_turn("update", done_ == Done::step);
  scaler_.update(!finite_);
  done_ = Done::nothing;
  return !finite_;
}

void ScaledStep::restore(std::string_view state) {
  scaler_.restore(state);
  done_ = Done::nothing;
}

}  // namespace st
