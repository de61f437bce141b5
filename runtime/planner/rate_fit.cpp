#include "planner/rate_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "planner/measured_steps.h"

namespace st {
namespace {

/// Where the rate of bytes may change: an instruction's operands then come from another level of the memory hierarchy.
constexpr std::array<double, 5> kLevels = {0, 256e3, 1e6, 4e6, 16e6};
constexpr size_t kFirstLevel = 3, kTerms = kFirstLevel + kLevels.size();
using Terms = std::array<double, kTerms>;  // overhead, flops, activations, bytes of each level

/// The first `levels` levels; the last one has no end.
Terms terms_of(const OpWork& work, size_t levels) {
  Terms terms = {1, work.flops, work.activations};
  for (size_t level = 0; level < levels; ++level) {
    const double end = level + 1 < levels ? kLevels[level + 1] : std::numeric_limits<double>::infinity();
    terms[kFirstLevel + level] = std::clamp(work.bytes - kLevels[level], 0.0, end - kLevels[level]);
  }
  return terms;
}

/// Those that the largest instruction reaches well into: a level's rate from a few bytes of it would be noise.
size_t levels_of(std::span<const OpTime> times) {
  double most = 0;
  for (const OpTime& time : times) most = std::max(most, time.work.bytes);
  size_t levels = 1;
  while (levels < kLevels.size() && most >= 2 * kLevels[levels]) ++levels;
  return levels;
}

double dot(const Terms& a, const Terms& b) {
  double sum = 0;
  for (size_t i = 0; i < kTerms; ++i) sum += a[i] * b[i];
  return sum;
}

/// Non-negative least squares by coordinate descent; each column is scaled by its norm first.
Terms non_negative_fit(std::span<const Terms> rows, std::span<const double> values) {
  constexpr int kSweeps = 4000;
  Terms scale{}, wanted{}, found{};
  std::array<Terms, kTerms> products{};
  for (const Terms& row : rows)
    for (size_t i = 0; i < kTerms; ++i) scale[i] += row[i] * row[i];
  for (double& s : scale) s = s > 0 ? 1 / std::sqrt(s) : 0;
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < kTerms; ++i) {
      wanted[i] += rows[r][i] * scale[i] * values[r];
      for (size_t j = 0; j < kTerms; ++j) products[i][j] += rows[r][i] * scale[i] * rows[r][j] * scale[j];
    }
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (size_t i = 0; i < kTerms; ++i)
      if (products[i][i] > 0) found[i] = std::max(0.0, found[i] + (wanted[i] - dot(products[i], found)) / products[i][i]);
  for (size_t i = 0; i < kTerms; ++i) found[i] *= scale[i];
  return found;
}

OpRate fit_arithmetic(std::string name, std::span<const OpTime> times) {
  constexpr int kRounds = 3;
  // Arithmetic takes at least so much of the time of the fastest instruction: where bytes and flops rise together, the fit could not tell
  // them apart, and a large product would take next to no time.
  constexpr double kArithmetic = 0.6;
  double least = std::numeric_limits<double>::infinity();
  for (const OpTime& time : times)
    if (time.work.flops > 0) least = std::min(least, kArithmetic * time.seconds / time.work.flops);
  std::vector<double> weights, values(times.size());
  for (const OpTime& time : times) weights.push_back(1 / std::max(time.seconds, 1e-9));
  std::vector<Terms> rows(times.size());
  const size_t levels = levels_of(times);
  Terms found{};
  // Weighted by the measured time alone, the fit would rather be too low than too high: so by that and the fitted one.
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < times.size(); ++i) {
      rows[i] = terms_of(times[i].work, levels);
      for (double& term : rows[i]) term *= weights[i];
      values[i] = (times[i].seconds - least * times[i].work.flops) * weights[i];
    }
    found = non_negative_fit(rows, values);
    found[1] += least;
    for (size_t i = 0; i < times.size(); ++i)
      weights[i] = 1 / std::sqrt(std::max(1e-18, dot(terms_of(times[i].work, levels), found) * times[i].seconds));
  }
  OpRate rate{std::move(name), found[1], {}, found[2]};
  double seconds = found[0];
  for (size_t level = 0; level < levels; ++level) {
    rate.by_bytes.push_back({kLevels[level], seconds});
    const double end = level + 1 < levels ? kLevels[level + 1] : 2 * std::max(kLevels[level], kLevels[1]);
    seconds += found[kFirstLevel + level] * (end - kLevels[level]);
    if (level + 1 == levels) rate.by_bytes.push_back({end, seconds});
  }
  return rate;
}

struct SizeGroup {
  double bytes = 0, seconds = 0, weight = 0;
};

/// Instructions of similar size, by size.
std::vector<SizeGroup> groups_of(std::span<const OpTime> times) {
  constexpr double kSimilar = 1.6, kTiny = 256;
  std::vector<OpRate::Point> all;
  for (const OpTime& time : times) all.push_back({time.work.bytes, time.seconds});
  std::ranges::sort(all, {}, &OpRate::Point::bytes);
  std::vector<SizeGroup> groups;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    std::vector<double> bytes, seconds;
    for (; end < all.size() && all[end].bytes <= kSimilar * all[begin].bytes + kTiny; ++end) {
      bytes.push_back(all[end].bytes);
      seconds.push_back(all[end].seconds);
    }
    groups.push_back({median_of(bytes), median_of(seconds), static_cast<double>(bytes.size())});
  }
  return groups;
}

/// Neighbours of which the larger one took less time get their mean (pool adjacent violators).
std::vector<OpRate::Point> rising(std::span<const SizeGroup> groups) {
  struct Pool {
    std::vector<double> bytes;
    double seconds, weight;
  };
  std::vector<Pool> pools;
  for (const SizeGroup& group : groups) {
    pools.push_back({{group.bytes}, group.seconds, group.weight});
    while (pools.size() > 1 && pools[pools.size() - 2].seconds > pools.back().seconds) {
      const Pool last = std::move(pools.back());
      pools.pop_back();
      Pool& to = pools.back();
      to.bytes.insert(to.bytes.end(), last.bytes.begin(), last.bytes.end());
      to.seconds = (to.seconds * to.weight + last.seconds * last.weight) / (to.weight + last.weight);
      to.weight += last.weight;
    }
  }
  std::vector<OpRate::Point> points;
  for (const Pool& pool : pools)
    for (const double bytes : pool.bytes) points.push_back({bytes, pool.seconds});
  return points;
}

OpRate fit_movement(std::string name, std::span<const OpTime> times) {
  constexpr double kSmall = 64e3, kFar = 64;
  OpRate rate{std::move(name), 0, rising(groups_of(times))};
  std::vector<OpRate::Point>& points = rate.by_bytes;
  const OpRate::Point first = points.front(), last = points.back();
  if (first.bytes > 0 && points.size() > 1) {
    const double slope = (points[1].seconds - first.seconds) / (points[1].bytes - first.bytes);
    points.insert(points.begin(), {0, std::clamp(first.seconds - slope * first.bytes, 0.0, first.seconds)});
  } else if (first.bytes > kSmall) {
    points.insert(points.begin(), {0, 0});
  }
  // Beyond the largest one measured, as many bytes a second; where nothing but an overhead was measured, nothing more is known.
  if (last.bytes > kSmall) points.push_back({kFar * last.bytes, kFar * last.seconds});
  return rate;
}

bool is_exchange(const OpTime& time) {
  constexpr std::array<std::string_view, 8> kOps = {"reduce_scatter", "all_gather",     "rank_sums",  "gather_squares",
                                                    "tensor_gather",  "tensor_scatter", "tensor_sum", "send"};
  return std::ranges::find(kOps, std::string_view(time.name).substr(0, time.name.find('.'))) != kOps.end();
}

/// "products.bf16" of "linear.bf16.t".
std::string class_of(const OpTime& time) {
  if (is_exchange(time))
    return time.name.starts_with("tensor_") ? "exchange.tensor" : time.name.starts_with("send") ? "exchange.stage" : "exchange.data";
  if (time.work.flops <= 0) return "memory";
  const size_t dtype = time.name.find('.');
  return "products" + time.name.substr(dtype, time.name.find('.', dtype + 1) - dtype);
}

}  // namespace

OpRate fit_rate(std::string name, std::span<const OpTime> times) {
  const bool is_arithmetic = std::ranges::any_of(times, [](const OpTime& time) { return time.work.flops > 0; });
  return is_arithmetic ? fit_arithmetic(std::move(name), times) : fit_movement(std::move(name), times);
}

std::vector<OpRate> fit_rates(std::span<const OpTime> times) {
  std::map<std::string, std::vector<OpTime>> by_name, firsts;
  for (const OpTime& time : times) (time.is_first ? firsts : by_name)[time.name].push_back(time);
  for (auto& [name, of_name] : firsts) by_name.try_emplace(name, std::move(of_name));
  std::map<std::string, std::vector<OpTime>> classes;
  for (const auto& [name, of_name] : by_name)
    for (const OpTime& time : of_name) classes[class_of(time)].push_back(time);
  const auto others = classes.find("exchange.data");
  if (others != classes.end())
    for (const char* axis : {"exchange.stage", "exchange.tensor"}) classes.try_emplace(axis, others->second);
  by_name.merge(classes);
  std::vector<OpRate> rates;
  for (const auto& [name, of_name] : by_name) rates.push_back(fit_rate(name, of_name));
  return rates;
}

}  // namespace st
