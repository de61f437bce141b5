// The state of a run whose values all follow from its step, so that a test knows what a checkpoint must contain.
#pragma once

#include <cstdint>
#include <string>

#include "base/workers.h"
#include "checkpoint/checkpoint_manager.h"

namespace st {

/// A few hundred kB in three tensors; one of them borrows memory that is valid until the next call.
CheckpointContent state_at(int64_t step);

/// Verifies that a checkpoint is valid and holds the state of its step; returns the problem, "" if there is none.
std::string problem_of(const std::string& folder, int64_t step, Workers& workers);
/// The same for all checkpoints in a run's folder; returns their steps, newest first, "30 20", or "problem: ...".
std::string steps_of(const std::string& run, Workers& workers);

}  // namespace st
