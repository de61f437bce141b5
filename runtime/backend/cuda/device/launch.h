// Gives kernels to a stream of NVIDIA's runtime.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <tuple>

#include "backend/cuda/kernel_loading.h"
#include "backend/cuda/runtime_status.h"
#include "base/error.h"

namespace st::cuda {

using StreamHandle = cudaStream_t;

struct Grid {
  int64_t blocks;  // 0: nothing is launched
  int threads;     // of a block: at most those of KERNEL
  int shared = 0;  // bytes that launch_shared() has; a kernel always has the same, or none
};

/// The most shared memory, in bytes, that a block of the current device can have.
inline int64_t most_shared_bytes() {
  int device = 0, bytes = 0;
  must(cudaGetDevice(&device), "cudaGetDevice");
  must(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  return bytes;
}

/// As NVIDIA's guide to lazy loading says it: asking for its attributes loads a kernel.
inline void load_kernel(const void* kernel) {
  cudaFuncAttributes unused{};
  must(cudaFuncGetAttributes(&unused, kernel), "cudaFuncGetAttributes");
}

/// The kernel runs some time after what the stream was given before. Arguments are copied. While there is a LoadingKernels it is loaded
/// alone, and the stream may be null. Throws unavailable with the runtime's words (runtime_status.h) if the launch is refused.
template <class... Parameters, class... Arguments>
void launch(StreamHandle stream, Grid grid, void (*kernel)(Parameters...), Arguments... arguments) {
  if (grid.blocks == 0) return;
  require(grid.blocks <= std::numeric_limits<int32_t>::max(), Code::internal, "cuda: a grid of ", grid.blocks, " blocks");
  if (LoadingKernels::is_on()) return load_kernel(reinterpret_cast<const void*>(kernel));
  std::tuple<Parameters...> values(arguments...);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.stream = stream;
  config.dynamicSmemBytes = static_cast<size_t>(grid.shared);
  if (grid.shared > 0) {  // more than 48 KiB in all are to be asked for; on each device
    const auto* const address = reinterpret_cast<const void*>(kernel);
    must(cudaFuncSetAttribute(address, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.shared), "cudaFuncSetAttribute");
  }
  const cudaError_t status = std::apply(
      [&](auto&... value) {
        void* places[] = {&value...};
        return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), places);
      },
      values);
  must(status, "cudaLaunchKernelExC");
}

}  // namespace st::cuda
