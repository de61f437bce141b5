// Memory needs of kernels as the passes ask for them: functions, since passes know no backend.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/program.h"
#include "passes/pack_weights.h"

namespace st {

/// Workspace bytes of a node's kernel.
using WorkspaceNeed = std::function<int64_t(const Program& program, const Section& section, const Node& node)>;

struct KernelNeeds {
  WorkspaceNeed workspace;
  PackingNeed packing;
  bool has_own_memory = false;  // a device whose kernels do not read the host's memory
};

}  // namespace st
