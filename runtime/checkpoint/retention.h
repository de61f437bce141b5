// Which checkpoints of a run stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace st {

struct Retention {
  int64_t last = 3;   // the newest so many; 0: all
  int64_t every = 0;  // and each whose step is a multiple; 0: none
  int64_t best = 0;   // and the best so many by a metric
  bool higher_is_better = false;
};

struct RetainedCheckpoint {
  std::string name;
  int64_t step = 0;
  std::optional<double> metric;  // none: it says nothing, or NaN
  bool valid = true;             // false: found corrupt; it takes nobody's place among the last
  bool finite = true;            // its weights are
  bool has_loss = true;          // the training object's loss is a number; a run that only skips has none any more
};

/// Names to remove, oldest first, of `checkpoints` newest first. The newest valid one always stays. So do, for a run that has diverged, the
/// newest valid one whose weights are finite, and the newest of these whose loss was finite too. Of equally good ones the newer stays. A
/// corrupt one goes when it is older than all that stay for being last.
std::vector<std::string> to_remove(const Retention& retention, const std::vector<RetainedCheckpoint>& checkpoints);

}  // namespace st
