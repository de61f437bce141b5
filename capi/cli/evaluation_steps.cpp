#include "evaluation_steps.h"

#include <algorithm>

namespace cli {

std::vector<int64_t> evaluation_steps(int64_t steps, int64_t rows_per_step, int64_t validation_rows) {
  constexpr int64_t kIntervals = 10;
  // In double: the rows of a very long run may overflow an integer, and precision does not matter beyond a few evaluations.
  const double read = static_cast<double>(steps) * static_cast<double>(rows_per_step);
  const double affordable = read / static_cast<double>(std::max<int64_t>(1, validation_rows));
  const int64_t intervals = std::min({kIntervals, steps, static_cast<int64_t>(std::min(affordable, double{kIntervals + 1})) - 1});
  if (intervals < 1) return {steps};
  std::vector<int64_t> at;
  for (int64_t i = 0; i <= intervals; ++i) at.push_back(i * steps / intervals);
  return at;
}

}  // namespace cli
