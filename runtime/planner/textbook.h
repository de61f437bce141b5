// The formula that textbooks give for the memory of training, beside which a plan can be read.
#pragma once

#include <cstdint>
#include <string>

#include "planner/rank_plan.h"

namespace st {

/// Bytes of weight, gradient and optimizer state, without a master copy: weight and gradient in the precision of products, the state as the
/// optimizer keeps it. (Rajbhandari et al. 2020 count 16 bytes for mixed precision with Adam: 4 more for the fp32 copy of the weights.)
struct Textbook {
  int64_t parameters = 0;
  double element = 0, state = 0;  // bytes a parameter
  double per_parameter() const { return 2 * element + state; }
  double data_parallel() const { return per_parameter() * static_cast<double>(parameters); }  // bytes on each rank
  double zero_3(int64_t ranks) const { return data_parallel() / static_cast<double>(ranks); }

  /// "textbook: 12 bytes a parameter (weight 2, gradient 2, adam 8), 10.0 B parameters: 120 GB on each rank, 15.0 GB with ZeRO-3 on 8".
  std::string text(const PlannedRun& run) const;
};
Textbook textbook(const PlannedRun& run);

}  // namespace st
