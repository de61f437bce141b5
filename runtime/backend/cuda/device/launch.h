// Gives kernels to a stream of NVIDIA's runtime.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <tuple>

#include "backend/cuda/runtime_status.h"
#include "base/error.h"

namespace st::cuda {

using StreamHandle = cudaStream_t;

struct Grid {
  int64_t blocks;  // 0: nothing is launched
  int threads;     // of a block: at most those of KERNEL
};

/// The kernel runs some time after what the stream was given before. Arguments are copied. Throws unavailable
/// with the runtime's words (runtime_status.h) if the launch is refused.
template <class... Parameters, class... Arguments>
void launch(StreamHandle stream, Grid grid, void (*kernel)(Parameters...), Arguments... arguments) {
  if (grid.blocks == 0) return;
  require(grid.blocks <= std::numeric_limits<int32_t>::max(), Code::internal, "cuda: a grid of ", grid.blocks, " blocks");
  std::tuple<Parameters...> values(arguments...);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.stream = stream;
  const cudaError_t status = std::apply(
      [&](auto&... value) {
        void* places[] = {&value...};
        return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), places);
      },
      values);
  must(status, "cudaLaunchKernelExC");
}

}  // namespace st::cuda
