// Reports of indices out of range by kernels, which cannot throw.
#pragma once

#include <device/threads.h>

#include "backend/cuda/kernel_queue.h"

namespace st::cuda {

/// `index` at `element`, row-major, of the tensor of indices, which later work of the stream may overwrite before the host reads the
/// report. The kernel then goes on without following the index.
DEVICE void report(const IndexFaults& faults, int64_t element, int64_t index) {
  if (faults.at[0] == nullptr) return;
  const uint64_t place = faults.call << IndexFaults::kElementBits | static_cast<uint64_t>(element);
  if (place <= atomic_min(faults.at[0], place)) atomic_set(faults.at[0] + 1, static_cast<uint64_t>(index));
}

/// Whether a call before this one has reported an index.
DEVICE bool has_fault(const IndexFaults& faults) { return faults.at[0] != nullptr && *faults.at[0] != IndexFaults::kNoFault; }

}  // namespace st::cuda
