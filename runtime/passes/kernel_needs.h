// What a device's kernels need of memory, for plans that are made without the device.
#pragma once

#include "passes/memory_plan.h"
#include "passes/pack_weights.h"

namespace st {

struct KernelNeeds {
  WorkspaceNeed workspace;
  PackingNeed packing;
};

}  // namespace st
