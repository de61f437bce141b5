// The needs of a machine's kernels, as passes ask for them.
#pragma once

#include "backend/needs.h"
#include "passes/kernel_needs.h"

namespace st {

KernelNeeds kernel_needs(const MachineProfile& machine);

}  // namespace st
