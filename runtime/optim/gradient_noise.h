// The gradient noise scale: the batch size beyond which larger batches stop paying.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace st {

/// McCandlish, Kaplan, Amodei et al. 2018, "An Empirical Model of Large-Batch Training", appendix A.1: a mean gradient over B rows has
/// E |G_B|^2 = |G|^2 + tr(S) / B, so two batch sizes determine |G|^2 and tr(S). As in the paper, both are averaged over steps, because
/// the values of a single step are too noisy.
class GradientNoise {
 public:
  /// Takes the norms of the mean gradient over `few` rows and over the `many` rows that include them; few < many. Ignores steps whose
  /// estimates are not finite.
  void add(double few, double norm_of_few, double many, double norm_of_many);

  /// tr(S) / |G|^2 in rows: growing a batch far below it costs little efficiency, growing one far above it gains nothing. NaN while
  /// either average is not positive, as before the first step.
  double scale() const;

  /// {"trace":0.25,"squared_gradient":0.5}: both averages, with enough digits to restore the same bits.
  std::string state() const;
  /// Throws invalid_argument and changes nothing if `state` does not have this form with finite numbers.
  void restore(std::string_view state);

 private:
  static constexpr double kDecay = 0.99;     // the same for both, so the start-up bias cancels in the ratio
  double trace_ = 0, squared_gradient_ = 0;  // times 1 - kDecay^steps
};

}  // namespace st
