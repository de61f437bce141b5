// The gradient noise scale: how large a batch is before larger ones stop paying.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace st {

/// McCandlish, Kaplan, Amodei et al. 2018, "An Empirical Model of Large-Batch Training", appendix A.1: a mean gradient over B rows has
/// E |G_B|^2 = |G|^2 + tr(S) / B, so two batch sizes tell |G|^2 and tr(S). Both are averaged over steps, as there: one step's are noise.
class GradientNoise {
 public:
  /// Norms of the mean gradient over `few` rows and over the `many` that they are among; few < many. What is not finite is passed over.
  void add(double few, double norm_of_few, double many, double norm_of_many);

  /// tr(S) / |G|^2 in rows: batches far below it lose little by growing, batches far above it gain nothing. NaN while an average is not
  /// positive, as before the first step.
  double scale() const;

  /// {"trace":0.25,"squared_gradient":0.5}: both averages; digits enough for the same bits.
  std::string state() const;
  /// Throws invalid_argument, and then changes nothing, for what is not such a text of finite numbers.
  void restore(std::string_view state);

 private:
  static constexpr double kDecay = 0.99;     // of both averages: the ratio needs no correction for its beginning
  double trace_ = 0, squared_gradient_ = 0;  // times 1 - kDecay^steps
};

}  // namespace st
