#include "bench_rows.h"

#include <algorithm>
#include <cstdio>

#include "quantiles.h"

namespace cli {

void BenchRows::start(const std::string& line) const {
  if (json_) return;
  std::printf("%s\n", line.c_str());
  for (const auto& [name, reason] : absent_) std::printf("%s is absent: %s\n", name.c_str(), reason.c_str());
  std::fflush(stdout);
}

void BenchRows::add(BenchRow row) {
  rows_.push_back(std::move(row));
  if (!json_) print(rows_.back());
}

void BenchRows::finish() const {
  if (json_)
    std::printf("%s\n", result().dump().c_str());
  else
    print_end();
}

void BenchRows::print(const BenchRow& row) const {
  std::printf("%s\n  own               %9.*f %s  %.3f of peak (%.0f GFLOP/s)\n", row.name.c_str(), digits_, quantile(row.own, 0.5),
              unit_.c_str(), quantile(row.fraction, 0.5), quantile(row.peak, 0.5) / 1e9);
  for (const auto& [name, speed] : row.peers) {
    const Ratio ratio = ratio_of(row.own, speed);
    std::printf("  %-17s %9.*f %s", name.c_str(), digits_, quantile(speed, 0.5), unit_.c_str());
    if (const auto share = row.peer_fractions.find(name); share != row.peer_fractions.end())
      std::printf("  %.3f of peak", quantile(share->second, 0.5));
    std::printf("  own is %.3f x (%.3f to %.3f)\n", ratio.median, ratio.p10, ratio.p90);
  }
  std::fflush(stdout);
}

void BenchRows::print_end() const {
  const Json all = means();  // named: a temporary would be gone before its items
  for (const auto& [name, mean] : all.items()) std::printf("geometric mean over %s: %.3f x\n", name.c_str(), mean.get<double>());
  for (const auto& [name, reason] : absent_) std::printf("absent: %s: %s\n", name.c_str(), reason.c_str());
}

Json BenchRows::result() const {
  Json rows = Json::array();
  for (const BenchRow& row : rows_) {
    Json peers = Json::object(), ratios = Json::object(), fractions = Json::object();
    for (const auto& [name, speed] : row.peers) {
      const Ratio ratio = ratio_of(row.own, speed);
      peers[name] = quantile(speed, 0.5);
      ratios[name] = {{"median", ratio.median}, {"p10", ratio.p10}, {"p90", ratio.p90}};
    }
    for (const auto& [name, share] : row.peer_fractions) fractions[name] = quantile(share, 0.5);
    rows.push_back({{"name", row.name},
                    {"own", quantile(row.own, 0.5)},
                    {"unit", unit_},
                    {"limit_fraction", quantile(row.fraction, 0.5)},
                    {"peers", peers},
                    {"ratio", ratios}});
    if (!fractions.empty()) rows.back()["peer_limit_fraction"] = fractions;
  }
  return {{"bench", kind_}, {"rows", rows}, {"geomean", means()}, {"absent", Json(absent_)}};
}

/// Over the rows that have the peer; "best" is the fastest peer of each row.
Json BenchRows::means() const {
  std::map<std::string, std::vector<double>> ratios;
  for (const BenchRow& row : rows_) {
    double best = 0;
    for (const auto& [name, speed] : row.peers) {
      const double ratio = ratio_of(row.own, speed).median;
      ratios[name].push_back(ratio);
      best = best == 0 ? ratio : std::min(best, ratio);
    }
    if (best > 0) ratios["best"].push_back(best);
  }
  Json result = Json::object();
  for (const auto& [name, values] : ratios) result[name] = geometric_mean(values);
  return result;
}

}  // namespace cli
