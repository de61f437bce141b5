// Loss scaling by itself: what to multiply a loss of the host's with, and its gradients divided again where they lie.
#pragma once

#include <scaletrain/loss_scaler.h>

#include <scaletrain/context.hpp>
#include <scaletrain/view.hpp>
#include <string>
#include <vector>

namespace scaletrain {

/// Defaults: those of torch.amp.GradScaler, and a minimum.
struct LossScalerOptions {
  bool enabled = true;  // false: the scale is 1; gradients are looked at all the same
  bool dynamic = true;  // false: the scale stays
  int32_t threads = 0;  // 0: the context's
  double initial_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  double minimum_scale = 1;
  int64_t hysteresis = 1;               // the overflow of a row that backs off
  bool consecutive_hysteresis = false;  // a row ends with each step without one, not with growth alone
};

/// A step is scale, backward, unscale, clip, step, update; what comes out of turn throws Status::wrong_state.
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

  /// What to multiply the loss with; the same until update().
  double scale() const {
    double scale = 0;
    done(st_loss_scaler_scale(get(), &scale));
    return scale;
  }
  /// Divides all of the step's gradients in place; whether all are finite.
  bool unscale(const std::vector<View>& gradients) const {
    std::vector<st_view> raw;
    raw.reserve(gradients.size());
    for (const View& gradient : gradients) raw.push_back(detail::writable("LossScaler::unscale", gradient).raw());
    int32_t finite = 0;
    done(st_loss_scaler_unscale(get(), static_cast<int64_t>(raw.size()), raw.data(), &finite));
    return finite != 0;
  }
  /// Whether the optimizer is to run now.
  bool step() const {
    int32_t run = 0;
    done(st_loss_scaler_step(get(), &run));
    return run != 0;
  }
  /// Chooses the next scale; whether this step was skipped.
  bool update() const {
    int32_t skipped = 0;
    done(st_loss_scaler_update(get(), &skipped));
    return skipped != 0;
  }

  /// JSON, for a checkpoint; restore() goes on from it.
  std::string state() const { return text(st_loss_scaler_state); }
  void restore(const std::string& state) const { done(st_loss_scaler_restore(get(), state.c_str())); }
};

}  // namespace scaletrain
