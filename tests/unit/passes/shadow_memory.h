// Checks a memory layout without believing in the planner's liveness: runs the plan on shadow memory, where each 64-byte cell remembers
// whose bytes it holds, and looks at every read whether they are still there.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace st {

/// What is wrong with the plan's places; empty: nothing. Two steps are run.
std::vector<std::string> faults_of(const Plan& plan);

}  // namespace st
