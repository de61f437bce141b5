#include "bench_rows.h"

#include <algorithm>
#include <cstdio>

namespace cli {
namespace {

Json json_of(const Ratio& ratio) { return {{"median", ratio.median}, {"p10", ratio.p10}, {"p90", ratio.p90}}; }

Json medians_of(const std::map<std::string, std::vector<double>>& samples) {
  Json medians = Json::object();
  for (const auto& [name, values] : samples) medians[name] = quantile(values, 0.5);
  return medians;
}

/// Each quantile's median over the rounds.
Ratio typical(const std::vector<Ratio>& rounds) {
  const auto median_of = [&](double Ratio::*part) {
    std::vector<double> values;
    for (const Ratio& round : rounds) values.push_back(round.*part);
    return quantile(std::move(values), 0.5);
  };
  return {median_of(&Ratio::median), median_of(&Ratio::p10), median_of(&Ratio::p90)};
}

}  // namespace

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

void BenchRows::finish(const Json& summary, const std::string& lines) const {
  if (json_) {
    Json all = result();
    if (!summary.empty()) all["summary"] = summary;
    std::printf("%s\n", all.dump().c_str());
  } else {
    print_end(lines);
  }
}

void BenchRows::print(const BenchRow& row) const {
  const bool is_usual = row.unit.empty();
  const std::string& unit = is_usual ? unit_ : row.unit;
  std::printf("%s\n  own               %9.*f %s  %.3f of %s (%.0f %s)\n", row.name.c_str(), digits_, quantile(row.own, 0.5), unit.c_str(),
              quantile(row.fraction, 0.5), limit_.name, quantile(row.peak, 0.5) / (is_usual ? limit_.one : 1),
              is_usual ? limit_.unit : unit.c_str());
  for (const auto& [name, speed] : row.peers) {
    const Ratio ratio = ratio_of(row.own, speed);
    std::printf("  %-17s %9.*f %s", name.c_str(), digits_, quantile(speed, 0.5), unit.c_str());
    if (const auto share = row.peer_fractions.find(name); share != row.peer_fractions.end())
      std::printf("  %.3f of peak", quantile(share->second, 0.5));
    std::printf("  own is %.3f x (%.3f to %.3f)%s%s\n", ratio.median, ratio.p10, ratio.p90, name == kOwnAuto ? "  by " : "",
                name == kOwnAuto ? row.library.c_str() : "");
  }
  print_limits(row);
  std::fflush(stdout);
}

void BenchRows::print_limits(const BenchRow& row) const {
  if (!row.fractions.empty()) {
    std::string shares;
    for (const auto& [name, share] : row.fractions) {
      char text[64];
      std::snprintf(text, sizeof text, "%s %.3f of %s", shares.empty() ? "" : ",", quantile(share, 0.5), name.c_str());
      shares += text;
    }
    std::printf("  own by peak:%s\n", shares.c_str());
  }
  for (const auto& [side, rounds] : row.latencies) {
    const Ratio call = typical(rounds);
    std::printf("  a call of %-8s %9.1f us (%.1f to %.1f)\n", side.c_str(), call.median, call.p10, call.p90);
  }
  if (row.scaling.empty()) return;
  const Ratio own = spread_of(row.scaling);
  std::printf("  own is %.3f x itself with one thread (%.3f to %.3f), the FMA loop %.3f x\n", own.median, own.p10, own.p90,
              quantile(row.loop_scaling, 0.5));
}

void BenchRows::print_end(const std::string& lines) const {
  const Json all = means();  // named: a temporary would be destroyed before its items are read
  for (const auto& [name, mean] : all.items())
    if (lines.empty()) std::printf("geometric mean over %s: %.3f x\n", name.c_str(), mean.get<double>());
  std::printf("%s", lines.c_str());
  for (const auto& [name, reason] : absent_) std::printf("absent: %s: %s\n", name.c_str(), reason.c_str());
}

Json BenchRows::result() const {
  Json rows = Json::array();
  for (const BenchRow& row : rows_) {
    Json peers = Json::object(), ratios = Json::object();
    const Json fractions = medians_of(row.peer_fractions);
    for (const auto& [name, speed] : row.peers) {
      const Ratio ratio = ratio_of(row.own, speed);
      peers[name] = quantile(speed, 0.5);
      ratios[name] = json_of(ratio);
    }
    rows.push_back({{"name", row.name},
                    {"own", quantile(row.own, 0.5)},
                    {"unit", row.unit.empty() ? unit_ : row.unit},
                    {"limit_fraction", quantile(row.fraction, 0.5)},
                    {"peers", peers},
                    {"ratio", ratios}});
    if (!fractions.empty()) rows.back()["peer_limit_fraction"] = fractions;
    if (!row.fractions.empty()) rows.back()["fractions"] = medians_of(row.fractions);
    for (const auto& [side, rounds] : row.latencies) rows.back()["latency_us"][side] = json_of(typical(rounds));
    if (!row.library.empty()) rows.back()["library"] = row.library;
    if (!row.scaling.empty())
      rows.back()["scaling"] = {{"own", json_of(spread_of(row.scaling))}, {"loop", quantile(row.loop_scaling, 0.5)}};
  }
  return {{"bench", kind_}, {"rows", rows}, {"geomean", means()}, {"absent", Json(absent_)}};
}

/// Means over the rows that have the peer; "best" is the fastest peer of each row.
Json BenchRows::means() const {
  std::map<std::string, std::vector<double>> ratios;
  for (const BenchRow& row : rows_) {
    for (const auto& [name, speed] : row.peers) ratios[name].push_back(ratio_of(row.own, speed).median);
    if (const double best = least_ratio(row).first; best > 0) ratios["best"].push_back(best);
  }
  Json result = Json::object();
  for (const auto& [name, values] : ratios) result[name] = geometric_mean(values);
  return result;
}

std::pair<double, std::string> BenchRows::least_ratio(const BenchRow& row, std::span<const std::string_view> names) {
  std::pair<double, std::string> least;
  for (const auto& [name, speed] : row.peers) {
    if (name == kOwnTuned || name == kOwnAuto) continue;
    if (!names.empty() && std::ranges::find(names, name) == names.end()) continue;
    if (const double ratio = ratio_of(row.own, speed).median; least.second.empty() || ratio < least.first) least = {ratio, name};
  }
  return least;
}

}  // namespace cli
