// Decides where every value lies: one arena a role, memory shared by values that are never alive together.
#pragma once

#include <functional>

#include "ir/memory.h"
#include "ir/program.h"

namespace st {

/// Workspace bytes that a node's kernel asks for; handed in, since passes know no backend.
using WorkspaceNeed = std::function<int64_t(const Program& program, const Section& section, const Node& node)>;

/// Places values by liveness over the sections in their order (greedy by size, best fit, 64-byte aligned). A view lies where its source
/// does; a value stored in a slot lies in the slot; an elementwise result takes the place of an operand that dies there. What ranks gather
/// for a while (Role::gathered) is in Arena::buckets, by liveness too. Places of
/// parameters, gradients and optimizer slots depend on the slots alone, not on the batch. Bitwise the same results as without sharing.
MemoryLayout memory_plan(const Program& program, const WorkspaceNeed& need);

}  // namespace st
