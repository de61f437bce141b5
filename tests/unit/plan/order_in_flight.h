// Orders of a step with several micro-batches in flight, as the first stage of a pipeline has them.
#pragma once

#include "plan/step_order.h"

namespace st {

/// One forward, one backward (1F1B): as many forwards as may be in flight, then a backward before each further forward. With all micro-
/// batches in flight it is GPipe. For programs of a forward, a backward and an update section.
inline StepOrder order_in_flight(const Program& program, int32_t micro_batches, int32_t in_flight) {
  StepOrder order;
  const auto section = [&](Phase phase) { return static_cast<int32_t>(program.find(phase) - program.sections.data()); };
  int32_t forward = 0;
  for (int32_t backward = 0; backward < micro_batches; ++backward) {
    for (; forward < micro_batches && forward < backward + in_flight; ++forward) order.push_back({section(Phase::forward), forward});
    order.push_back({section(Phase::backward), backward});
  }
  order.push_back({section(Phase::update), micro_batches - 1});
  return order;
}

}  // namespace st
