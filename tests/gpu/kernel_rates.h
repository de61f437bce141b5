// How fast our kernels are on a device, at the sizes at which peers_pytorch.py measures PyTorch's.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/cuda/cuda_context.h"
#include "base/memory_source.h"

namespace st {

/// One JSON line a measurement: median, 10th and 90th percentile of 20 rounds. Takes 3 GB of the device. Sizes are divided by `smaller`, to
/// try the program without one.
void print_kernel_rates(const cuda::HeldContext& device, std::shared_ptr<MemorySource> memory, int64_t smaller = 1);

}  // namespace st
