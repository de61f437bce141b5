// Places every value in memory: one arena per role; values that are never alive at the same time share memory.
#pragma once

#include <functional>

#include "ir/memory.h"
#include "ir/program.h"

namespace st {

/// Workspace bytes of a node's kernel; a parameter, since passes know no backend.
using WorkspaceNeed = std::function<int64_t(const Program& program, const Section& section, const Node& node)>;

/// Places values by liveness over the sections in order (greedy by size, best fit, 64-byte aligned). Bitwise the same results as without
/// sharing.
/// - A view is placed at its source, a value stored in a slot in the slot, an elementwise result in place of an operand that dies there.
/// - Gathered slots (Role::gathered) are in Arena::buckets, also by liveness.
/// - The places of parameters, gradients and optimizer slots depend only on the slots, not on the batch.
MemoryLayout memory_plan(const Program& program, const WorkspaceNeed& need);

}  // namespace st
