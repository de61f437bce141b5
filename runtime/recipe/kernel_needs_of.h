// The needs of a machine's kernels, as passes ask for them.
#pragma once

#include "backend/needs.h"
#include "passes/kernel_needs.h"

namespace st {

KernelNeeds kernel_needs(const MachineProfile& machine);
/// Those of a backend of this process, whose ranks have so many threads.
KernelNeeds kernel_needs(const Backend& backend, int threads);

}  // namespace st
