// Checks a memory layout independently of the planner's liveness: runs the plan on shadow memory, where each 64-byte cell records which
// value it holds, and checks at every read that the value is still there.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace st {

/// The faults of the plan's placement; empty: none. Runs two steps in this order, which is the plan's.
std::vector<std::string> faults_of(const Plan& plan, const StepOrder& order);
/// One micro-batch in flight.
std::vector<std::string> faults_of(const Plan& plan);

}  // namespace st
