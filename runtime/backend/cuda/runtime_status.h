// Errors of CUDA's runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace st::cuda {

/// Throws unavailable, or out_of_memory, unless `status` is success: with what was called, the runtime's name and words for it, and the way
/// out where the device is lost to this process. Clears the runtime's last error, which the host's own calls would else see.
void must(cudaError_t status, std::string_view called);

}  // namespace st::cuda
