// A device of CUDA's runtime as a backend: its memory, streams, and the kernels of this folder.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/cuda/cuda_network.h"

namespace st::cuda {

/// Device `index` of the runtime that is linked. `name`: of the plug-in's table; buffers are counted by `memory`; ranks are
/// connected by the NCCL that `nccl` finds. Throws unavailable with the runtime's words.
std::unique_ptr<Backend> make_cuda_backend(std::string name, std::string kernel_class, int index, std::shared_ptr<MemorySource> memory,
                                           OpenNccl nccl);

}  // namespace st::cuda
