// Loss scaling for a host with its own forward, backward and optimizer: the scale, unscaling over its arrays, and the one right order.
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

/// scale -> backward -> unscale -> clip -> step -> update, again and again; what comes out of turn is wrong_state, names the order and
/// changes nothing. A scale may be asked for and gone back with as often as a step has micro-batches. One call at a time.
class ScaledStep {
 public:
  ScaledStep(const LossScale& options, std::unique_ptr<Workers> workers) : scaler_(options), workers_(std::move(workers)) {}

  /// What to multiply the loss with. Begins a step.
  double scale();
  /// Divides all of a step's gradients, in place, and looks at them: whether every element is finite. A scaler that is off leaves them as
  /// they are and still looks. Throws invalid_argument, before anything is written, for no gradients and for types that are none.
  bool unscale(std::span<const GradientArray> gradients);
  /// Whether the host's optimizer may run: unscale() found all finite.
  bool step();
  /// unscale() and step() in one pass, by an optimizer that divides by `scale` on its way, looks at every element, and updates when all are
  /// finite, as it then says. When it throws, it is unscale's turn as before.
  void step_by(const std::function<bool(double scale)>& optimizer);
  /// Ends the step and chooses the next one's scale. Whether this one was skipped.
  bool update();

  std::string state() const { return scaler_.state(); }
  /// Forgets a step that is under way: the next call is scale().
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
