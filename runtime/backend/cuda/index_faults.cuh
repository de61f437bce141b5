// Reports of indices out of range by kernels, which cannot throw.
#pragma once

#include <device/threads.h>

#include "backend/cuda/kernel_queue.h"

namespace st::cuda {

/// `element`: row-major, in the tensor of indices. The kernel then goes on without following the index.
DEVICE void report(const IndexFaults& faults, int64_t element) {
  if (faults.at[0] != nullptr) atomic_min(faults.at[0], faults.call << IndexFaults::kElementBits | static_cast<uint64_t>(element));
}

/// Whether a call before this one has reported an index.
DEVICE bool has_fault(const IndexFaults& faults) { return faults.at[0] != nullptr && *faults.at[0] != IndexFaults::kNoFault; }

}  // namespace st::cuda
