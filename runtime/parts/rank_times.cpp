#include "parts/rank_times.h"

#include <algorithm>

namespace st {

double RankTimes::computing() const { return std::max(seconds - exposed, 0.0); }

double RankTimes::hidden() const { return exchange > 0 ? std::clamp(1 - exposed / exchange, 0.0, 1.0) : 0.0; }

void RankTimes::add_to(JsonLine& line) const {
  line.add("milliseconds", seconds * 1e3).add("computing", computing() * 1e3).add("exchange", exchange * 1e3).add("hidden", hidden());
}

}  // namespace st
