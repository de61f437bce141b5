// The network of CUDA devices of several ranks: NCCL, on the streams of this folder.
#pragma once

#include <functional>
#include <memory>

#include "backend/cuda/cuda_context.h"
#include "backend/device_group.h"
#include "comm/nccl/nccl_library.h"

namespace st::cuda {

/// Finds NCCL (vendor_library.h). Throws unavailable with one line that has every place, and the remedy.
std::shared_ptr<const nccl::Library> open_nccl();

/// How a backend finds NCCL; not the table's own in tests.
using OpenNccl = std::shared_ptr<const nccl::Library> (*)();

/// For the device of a context.
std::unique_ptr<DeviceNetwork> make_cuda_network(HeldContext context, std::shared_ptr<const nccl::Library> library);

}  // namespace st::cuda
