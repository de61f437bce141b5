// Places every value in memory: one arena per role; values that are never alive at the same time share memory.
#pragma once

#include "ir/memory.h"
#include "passes/kernel_needs.h"
#include "plan/step_order.h"

namespace st {

/// Places values by liveness in the order in which a micro-batch runs its sections (greedy by size, best fit, 64-byte aligned). Bitwise the
/// same results as without sharing.
/// - A view is placed at its source, a value stored in a slot in the slot, an elementwise result in place of an operand that dies there.
/// - Gathered slots (Role::gathered) are in Arena::buckets, also by liveness.
/// - The places of parameters, gradients and optimizer slots depend only on the slots, not on the batch.
/// - The stash has a buffer for each chunk and micro-batch in flight (StashBuffers), in memory that the chunks share where this takes less
/// (stash_pool); other values live within one run of a section, so all runs share them.
MemoryLayout memory_plan(const Program& program, const StepOrder& order, const WorkspaceNeed& need);

}  // namespace st
