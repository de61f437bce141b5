// Loss scaling without a trainer: the factor for the host's loss, and the division of its gradients, in place.
#pragma once

#include <scaletrain/loss_scaler.h>

#include <scaletrain/context.hpp>
#include <scaletrain/view.hpp>
#include <string>
#include <vector>

namespace scaletrain {

/// Defaults are those of torch.amp.GradScaler, with a minimum.
struct LossScalerOptions {
  bool enabled = true;  // false: the scale is 1; gradients are still checked
  bool dynamic = true;  // false: the scale is constant
  int32_t threads = 0;  // 0: the context's
  double initial_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  double minimum_scale = 1;
  int64_t hysteresis = 1;               // the scale is lowered by each overflow from this one on
  bool consecutive_hysteresis = false;  // the count of overflows restarts after each step without one, not only when the scale grows
};

/// A step is scale, backward, unscale, clip, step, update; a call out of turn throws Status::wrong_state.
class LossScaler : public detail::Handle<st_loss_scaler, st_loss_scaler_destroy> {
 public:
  explicit LossScaler(const Context& context) : LossScaler(context, LossScalerOptions()) {}
  LossScaler(const Context& context, const LossScalerOptions& options) : Handle(detail::Access::host(context)) {
    st_loss_scaler_options raw;
    done(st_loss_scaler_options_init(&raw, sizeof raw));
    raw.enabled = options.enabled ? 1 : 0;
    raw.dynamic = options.dynamic ? 1 : 0;
    raw.threads = options.threads;
    raw.initial_scale = options.initial_scale;
    raw.growth_factor = options.growth_factor;
    raw.backoff_factor = options.backoff_factor;
    raw.growth_interval = options.growth_interval;
    raw.minimum_scale = options.minimum_scale;
    raw.hysteresis = options.hysteresis;
    raw.consecutive_hysteresis = options.consecutive_hysteresis ? 1 : 0;
    done(st_loss_scaler_create(context.get(), &raw, out()));
  }

  /// The factor for the loss; it does not change until update().
  double scale() const {
    double scale = 0;
    done(st_loss_scaler_scale(get(), &scale));
    return scale;
  }
  /// Divides all of the step's gradients in place; returns whether all are finite.
  bool unscale(const std::vector<View>& gradients) const {
    std::vector<st_view> raw;
    raw.reserve(gradients.size());
    for (const View& gradient : gradients) raw.push_back(detail::writable("LossScaler::unscale", gradient).raw());
    int32_t finite = 0;
    done(st_loss_scaler_unscale(get(), static_cast<int64_t>(raw.size()), raw.data(), &finite));
    return finite != 0;
  }
  /// Whether to run the optimizer now.
  bool step() const {
    int32_t run = 0;
    done(st_loss_scaler_step(get(), &run));
    return run != 0;
  }
  /// Chooses the next scale; returns whether this step was skipped.
  bool update() const {
    int32_t skipped = 0;
    done(st_loss_scaler_update(get(), &skipped));
    return skipped != 0;
  }

  /// JSON, for a checkpoint; restore() continues from it.
  std::string state() const { return text(st_loss_scaler_state); }
  void restore(const std::string& state) const { done(st_loss_scaler_restore(get(), state.c_str())); }
};

}  // namespace scaletrain
