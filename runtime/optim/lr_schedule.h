// Learning-rate schedules: pure functions of the number of successful steps so far, so that a skipped step, a resume or another number of
// ranks changes nothing.
#pragma once

#include <cstdint>
#include <string>

namespace st {

struct LrSchedule {
  std::string kind = "constant";
  double lr = 1e-3;
  int64_t warmup = 20;  // steps

  /// Learning rate of the step after k successful ones: f(k) = lr * min(1, (k + 1) / warmup), then constant. The first step is not zero.
  double at(int64_t k) const;
};

}  // namespace st
