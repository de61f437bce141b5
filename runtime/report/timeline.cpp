#include "report/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace st {

size_t StepTimes::slowest() const {
  const auto found = std::ranges::max_element(ranks, {}, &RankTimes::computing);
  return static_cast<size_t>(found - ranks.begin());
}

double StepTimes::straggler() const {
  double sum = 0;
  for (const RankTimes& rank : ranks) sum += rank.computing();
  if (sum == 0) return std::numeric_limits<double>::quiet_NaN();
  return ranks[slowest()].computing() * static_cast<double>(ranks.size()) / sum;
}

Timeline::Timeline(size_t ranks) : kept_(kSteps, {.ranks = std::vector<RankTimes>(ranks)}) {}

std::vector<RankTimes>& Timeline::add(int64_t step) {
  while (count_ > 0 && kept_[count_ - 1].step >= step) --count_;
  if (count_ == kSteps)
    std::rotate(kept_.begin(), kept_.begin() + 1, kept_.end());
  else
    ++count_;
  StepTimes& added = kept_[count_ - 1];
  added.step = step;
  return added.ranks;
}

std::string Timeline::json() const {
  std::vector<std::string> all, ranks;
  for (const StepTimes& step : steps()) {
    ranks.clear();
    for (const RankTimes& of : step.ranks) {
      JsonLine rank;
      of.add_to(rank);
      ranks.push_back(rank.text());
    }
    JsonLine line;
    all.push_back(line.add("step", step.step).add("straggler", step.straggler()).add_json("ranks", json_list(ranks)).text());
  }
  return json_list(all);
}

std::string computing_json(double began, double ended, const ExchangeQueue& exchanges) {
  std::vector<std::string> spans;
  const auto add = [&](double from, double to) {
    if (to > from) spans.push_back(text('[', std::llround(from * 1e6), ',', std::llround(to * 1e6), ']'));
  };
  const uint64_t all = exchanges.exposures(), first = all - std::min(all, ExchangeQueue::kKept);
  double at = began;
  if (first > 0) at = std::max(at, exchanges.exposure(first).began);  // what was before is not kept
  for (uint64_t number = first; number < all; ++number) {
    const ExchangeQueue::Exposed& waited = exchanges.exposure(number);
    if (waited.ended <= at) continue;
    add(at, std::min(waited.began, ended));
    at = waited.ended;
  }
  add(at, ended);
  return json_list(spans);
}

}  // namespace st
