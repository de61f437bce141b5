// A device of CUDA's runtime as a backend: its memory, streams, and the kernels of this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/cuda/cuda_context.h"
#include "backend/cuda/cuda_network.h"
#include "backend/cuda/product_choice.h"

namespace st::cuda {

/// Makes the choices of the device that is current then.
using MakeChoices = std::function<std::unique_ptr<ProductChoices>()>;

/// The device of a context, of the runtime that is linked. `name`: of the plug-in's table; buffers are counted by `memory`; ranks are
/// connected by the NCCL that `nccl` finds. Without `products` all are computed by our kernels. Throws unavailable with the runtime's
/// words.
std::unique_ptr<Backend> make_cuda_backend(std::string name, std::string kernel_class, HeldContext context,
                                           std::shared_ptr<MemorySource> memory, OpenNccl nccl, const MakeChoices& products = nullptr);

}  // namespace st::cuda
