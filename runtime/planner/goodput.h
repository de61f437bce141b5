// Goodput: the share of a long run's time that is left by failures of nodes and by the checkpoints against them.
#pragma once

#include <cstdint>

namespace st {

struct Failures {
  double hours_between = 0;         // on one node, on average; 0: none fails
  double restart_seconds = 300;     // until ranks compute again after a failure
  double save_seconds = 0;          // that a checkpoint blocks the step
  int64_t steps_between_saves = 0;  // 0: the number that loses least (Young 1974, Daly 2006)
};

struct Goodput {
  double share = 1;  // of the time makes progress that lasts
  int64_t steps_between_saves = 0;
};

/// The share of time that is left by saves, by the work since the last checkpoint that a failure loses (half an interval on average), and
/// by restarts.
Goodput goodput(double step_seconds, int64_t nodes, const Failures& failures);

}  // namespace st
