#include "quantiles.h"

#include <algorithm>
#include <cmath>

namespace cli {

double quantile(std::vector<double> samples, double q) {
  std::ranges::sort(samples);
  const double at = q * static_cast<double>(samples.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, samples.size() - 1);
  return samples[low] + (at - static_cast<double>(low)) * (samples[high] - samples[low]);
}

Ratio ratio_of(std::span<const double> own, std::span<const double> peer) {
  std::vector<double> ratios;
  for (size_t i = 0; i < own.size(); ++i) ratios.push_back(own[i] / peer[i]);
  return spread_of(ratios);
}

Ratio spread_of(const std::vector<double>& ratios) { return {quantile(ratios, 0.5), quantile(ratios, 0.1), quantile(ratios, 0.9)}; }

double geometric_mean(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += std::log(v);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace cli
