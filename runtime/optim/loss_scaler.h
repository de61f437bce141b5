// Loss scaling: chooses the factor on the loss so that fp16 gradients neither underflow nor overflow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace st {

/// The defaults are those of torch.amp.GradScaler, plus a minimum.
struct LossScale {
  bool enabled = true;   // false: the scale is always 1
  bool dynamic = true;   // false: the scale never changes
  double scale = 65536;  // initial
  double growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;       // steps
  int64_t hysteresis = 1;               // first overflow that backs off, counted from 1; from DeepSpeed, GradScaler has none
  bool consecutive_hysteresis = false;  // true: every step without overflow restarts the count; false: only growth does
  double minimum = 1;                   // of a dynamic scale: an overflow that scaling does not cause would drive it to 0
};

/// Bitwise equal to torch.amp.GradScaler except for the minimum and the maximum. Scales are fp32 numbers, each product rounded once to
/// fp32. A scale does not grow past 2^126 (GradScaler's limit is that of fp32): its inverse, which multiplies the gradients, would be
/// denormal, and denormals are flushed to 0 here.
class LossScaler {
 public:
  /// Throws invalid_argument that names the option, its value and the allowed range. Options that have no effect (the scaler is not enabled
  /// or not dynamic) are checked too; only the comparison of initial scale and minimum is left out then.
  explicit LossScaler(const LossScale& options);

  /// The scale of the current step; update() changes it for the next one.
  double scale() const { return options_.enabled ? scale_ : 1; }
  const LossScale& options() const { return options_; }

  /// Call it last in a step. A step skipped because gradients were not finite (`found_inf`) lowers the scale; growth_interval other steps
  /// in a row raise it. With a hysteresis of n, the first n - 1 skipped steps only restart the growth interval.
  void update(bool found_inf);

  /// {"scale":65536.0,"good_steps":12}, and "overflows_left" with a hysteresis above 1: everything that update() changes, with enough
  /// digits to restore the same bits.
  std::string state() const;
  /// Throws invalid_argument and changes nothing if `state` does not have this form, its scale is not an fp32 number in [2^-126, 2^126], or
  /// its good_steps are not below the growth interval.
  void restore(std::string_view state);

 private:
  LossScale options_;
  double scale_;
  int64_t good_steps_ = 0;      // since the scale last changed
  int64_t overflows_left_ = 1;  // 1: the next overflow backs off
};

}  // namespace st
