#include "optim/lr_schedule.h"

#include <algorithm>

#include "base/error.h"

namespace st {

double LrSchedule::at(int64_t k) const {
  check(kind == "constant", "lr_schedule: \"", kind, "\" is unknown; use constant");
  if (warmup <= 0) return lr;
  return lr * std::min(1.0, static_cast<double>(k + 1) / static_cast<double>(warmup));
}

}  // namespace st
