// Loss scaling: a state machine that chooses what the loss is multiplied with, so that gradients neither vanish nor overflow in fp16.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace st {

/// The defaults are those of torch.amp.GradScaler, and a minimum.
struct LossScale {
  bool enabled = true;   // false: the scale is 1 and stays 1
  bool dynamic = true;   // false: the scale stays what it is
  double scale = 65536;  // the first one
  double growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;       // steps
  int64_t hysteresis = 1;               // the overflow that backs off; DeepSpeed's, GradScaler has none
  bool consecutive_hysteresis = false;  // counted anew by each step without one, not by growth alone
  double minimum = 1;                   // of a dynamic scale: an overflow that scaling does not cause would make it 0 in the end
};

/// Follows torch.amp.GradScaler to the bit, but for the minimum and the maximum: scales are fp32 numbers, each product rounded once to
/// fp32. A scale that would grow past 2^126 stays (GradScaler's past fp32): gradients are multiplied with its inverse, which would be
/// denormal, and denormals are 0 here.
class LossScaler {
 public:
  /// Throws invalid_argument: names the option, its value and what is allowed. Options that do not matter here (of a scaler that is not
  /// enabled, or not dynamic) are checked all the same, but for the first scale against the minimum.
  explicit LossScaler(const LossScale& options);

  /// Of the next step, and of the one under way until its update().
  double scale() const { return options_.enabled ? scale_ : 1; }
  const LossScale& options() const { return options_; }

  /// After a step, as its very last act: one that was skipped for gradients that are not finite backs off; growth_interval others in a row
  /// grow. With a hysteresis of n the first n - 1 skipped ones only begin the row anew.
  void update(bool found_inf);

  /// {"scale":65536.0,"good_steps":12}: all that update() changes; digits enough for the same bits. With a hysteresis above 1 also
  /// "overflows_left".
  std::string state() const;
  /// Throws invalid_argument, and then changes nothing: for what is not such a text, a scale that is no fp32 number or past 2^+-126,
  /// steps that are not below the interval.
  void restore(std::string_view state);

 private:
  LossScale options_;
  double scale_;
  int64_t good_steps_ = 0;      // since the scale last changed
  int64_t overflows_left_ = 1;  // until it backs off
};

}  // namespace st
