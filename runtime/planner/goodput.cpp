#include "planner/goodput.h"

#include <algorithm>
#include <cmath>

namespace st {

Goodput goodput(double step_seconds, int64_t nodes, const Failures& failures) {
  Goodput all{.share = 1, .steps_between_saves = failures.steps_between_saves};
  if (step_seconds <= 0) return all;
  const double between = failures.hours_between > 0 ? failures.hours_between * 3600 / static_cast<double>(std::max<int64_t>(nodes, 1)) : 0;
  if (all.steps_between_saves == 0) {
    const double best = between > 0 ? std::sqrt(2 * std::max(failures.save_seconds, step_seconds) * between) : 3600;
    all.steps_between_saves = std::max<int64_t>(1, std::llround(best / step_seconds));
  }
  const double interval = static_cast<double>(all.steps_between_saves) * step_seconds;
  const double lost = between > 0 ? (failures.restart_seconds + (interval + failures.save_seconds) / 2) / between : 0;
  all.share = std::max(0.0, 1 - lost) * interval / (interval + failures.save_seconds);
  return all;
}

}  // namespace st
