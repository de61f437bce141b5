#include "planner/target_machine.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "base/error.h"

namespace st {

double OpRate::seconds(const OpWork& work) const {
  const double arithmetic = per_flop * work.flops + per_activation * work.activations;
  if (by_bytes.empty()) return arithmetic;
  if (by_bytes.size() == 1) return arithmetic + by_bytes.front().seconds;
  auto above = std::ranges::find_if(by_bytes, [&](const Point& point) { return point.bytes >= work.bytes; });
  above = std::clamp(above, by_bytes.begin() + 1, by_bytes.end() - 1);
  const Point &from = *(above - 1), &to = *above;
  const double slope = (to.seconds - from.seconds) / (to.bytes - from.bytes);
  return arithmetic + std::max(0.0, from.seconds + slope * (work.bytes - from.bytes));
}

const OpRate* RateSet::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(ops, name, {}, &OpRate::name);
  return found != ops.end() && found->name == name ? &*found : nullptr;
}

const RateSet& Machine::rates_for(int32_t of_threads, int32_t of_ranks, int64_t of_memory) const {
  require(!rates.empty(), Code::unavailable, "plan: machine ", name, " has no rates; measure it with `scaletrain bench --calibrate FILE`");
  const auto distance = [&](const RateSet& set) {  // in busy cores first
    return std::tuple(std::abs(std::log2(static_cast<double>(set.threads * set.ranks) / static_cast<double>(of_threads * of_ranks))),
                      std::abs(set.ranks - of_ranks), set.memory < of_memory, set.memory);
  };
  return *std::ranges::min_element(rates, {}, distance);
}

}  // namespace st
