// The state of a run whose every value follows from its step, so that who finds a checkpoint knows what must be in it.
#pragma once

#include <cstdint>
#include <string>

#include "base/workers.h"
#include "checkpoint/checkpoint_manager.h"

namespace st {

/// Some hundred kB in three tensors, of which one lies in memory and is valid until the next call.
CheckpointContent state_at(int64_t step);

/// What is wrong with a checkpoint that should be whole and hold the state of its step; empty: nothing.
std::string problem_of(const std::string& folder, int64_t step, Workers& workers);
/// The same of all that a run's folder holds: that each is whole, and of which steps they are, "30 20", newest first.
std::string steps_of(const std::string& run, Workers& workers);

}  // namespace st
