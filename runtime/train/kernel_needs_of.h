// The needs of a backend's kernels.
#pragma once

#include "backend/backend.h"
#include "passes/kernel_needs.h"

namespace st {

/// With so many threads. Does not refer to the backend, which may be gone when a plan is made.
KernelNeeds kernel_needs_of(const Backend& backend, int threads);

}  // namespace st
