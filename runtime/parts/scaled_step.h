// Loss scaling for a host with its own forward, backward and optimizer: chooses the scale, unscales the host's arrays, enforces the call
// order.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/workers.h"
#include "optim/loss_scaler.h"
#include "parts/unscale.h"

namespace st {

/// Each step: scale -> backward -> unscale -> clip -> step -> update. A call out of order throws wrong_state with the order and changes
/// nothing. scale() and backward may repeat, once per micro-batch. One call at a time.
class ScaledStep {
 public:
  ScaledStep(const LossScale& options, std::unique_ptr<Workers> workers) : scaler_(options), workers_(std::move(workers)) {}

  /// The factor for the loss. Begins a step.
  double scale();
  /// Divides all of a step's gradients in place by the scale; returns whether every element is finite. A disabled scaler only checks them.
  /// Throws invalid_argument, before anything is written, for no gradients and for types that are not floating.
  bool unscale(std::span<const GradientArray> gradients);
  /// Whether the host's optimizer may run: all gradients were finite in unscale().
  bool step();
  /// unscale() and step() in one pass, by an optimizer that divides by `scale`, checks every element, updates if all are finite, and
  /// returns whether they were. If it throws, unscale() or step_by() is still the next call.
  void step_by(const std::function<bool(double scale)>& optimizer);
  /// Ends the step, chooses the next scale, and returns whether this step was skipped.
  bool update();

  std::string state() const { return scaler_.state(); }
  /// Abandons the current step: the next call is scale().
  void restore(std::string_view state);

 private:
  enum class Done { nothing, scale, unscale, step };

  void require_turn(const char* call, bool its_turn) const;

  LossScaler scaler_;
  std::unique_ptr<Workers> workers_;
  Done done_ = Done::nothing;
  bool finite_ = true;
};

}  // namespace st
