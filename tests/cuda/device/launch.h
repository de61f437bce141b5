// The same names as runtime/backend/cuda/device/launch.h.
#pragma once

#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>

#include "backend/cuda/kernel_loading.h"
#include "base/error.h"
#include "device/device_memory.h"
#include "grid_engine.h"
#include "simulated_contexts.h"
#include "simulated_stream.h"

namespace st::cuda {

using StreamHandle = CUstream_st*;

struct Grid {
  int64_t blocks;
  int threads;
  int shared = 0;
};

inline int64_t most_shared_bytes() { return static_cast<int64_t>(simulated::shared_limit); }

/// A pointer, or an argument that has an array `at` of them, as kernels on a device with its own memory can follow it; an address of the
/// host's is an error of the kernel.
template <class T>
T for_kernel(T value, bool is_apart) {
  if constexpr (std::is_pointer_v<T>) {
    if (is_apart) return reinterpret_cast<T>(device_memory::for_kernels({reinterpret_cast<uintptr_t>(value)}).at);
  } else if constexpr (requires { *value.at[0]; }) {
    for (auto& pointer : value.at) pointer = for_kernel(pointer, is_apart);
  }
  return value;
}

template <class... Parameters, class... Arguments>
void launch(StreamHandle stream, Grid grid, void (*kernel)(Parameters...), Arguments... arguments) {
  if (grid.blocks == 0) return;
  require(grid.blocks <= std::numeric_limits<int32_t>::max(), Code::internal, "cuda: a grid of ", grid.blocks, " blocks");
  const auto* const entry = reinterpret_cast<const void*>(kernel);
  if (LoadingKernels::is_on()) return simulated::contexts().load(simulated::current_device(), entry, false);
  const bool is_apart = stream->device >= 0;
  if (is_apart) {
    simulated::need_context();
    require(simulated::is_in_primary(stream->device), Code::internal, "cuda: launch of ", grid.blocks, " blocks of ", grid.threads,
            " threads: invalid resource handle");
    simulated::contexts().load(stream->device, entry, true);
  }
  require(!stream->capture || stream->capture->is_valid, Code::unavailable,
          "cuda: cudaLaunchKernelExC returned 901 (cudaErrorStreamCaptureInvalidated: operation failed due to a previous error during "
          "capture)");
  if (simulated::on_launch != nullptr) simulated::on_launch(entry, grid.blocks);
  stream->give([kernel, grid, is_apart, values = std::tuple<Parameters...>(arguments...)] {
    const auto seen = std::apply([&](const auto&... value) { return std::tuple<Parameters...>(for_kernel(value, is_apart)...); }, values);
    simulated::run_grid([&] { std::apply(kernel, seen); }, grid.blocks, grid.threads, static_cast<size_t>(grid.shared));
  });
}

}  // namespace st::cuda
