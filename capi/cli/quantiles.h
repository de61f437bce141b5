// Medians and spreads of per-round samples.
#pragma once

#include <span>
#include <vector>

namespace cli {

/// 0 <= q <= 1, linear interpolation. Needs at least one sample.
double quantile(std::vector<double> samples, double q);

struct Ratio {
  double median = 0, p10 = 0, p90 = 0;
};

Ratio spread_of(const std::vector<double>& ratios);

/// Spread of own[i] / peer[i] over the rounds.
Ratio ratio_of(std::span<const double> own, std::span<const double> peer);

double geometric_mean(std::span<const double> values);

}  // namespace cli
