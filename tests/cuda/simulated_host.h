// A program of the host's that has CUDA's runtime itself: memory and streams of the simulated device, by a table that
// libscaletrain_cuda_simulated.so exports as st_simulated_host_v1. Devices are counted from 0.
#pragma once

#include <cstdint>

namespace st::simulated {

/// Zero, or null, where the runtime reports an error.
struct HostRuntime {
  void* (*allocate)(int device, int64_t bytes);
  void (*free)(void* place);
  void* (*allocate_pinned)(int64_t bytes);
  void (*free_pinned)(void* place);
  int64_t (*make_stream)(int device);  // the handle
  void (*end_stream)(int64_t stream);
  /// Return before the copy has run.
  void (*to_device)(int64_t stream, void* to, const void* pinned, int64_t bytes);
  void (*to_host)(int64_t stream, void* pinned, const void* from, int64_t bytes);
  /// The host waits for all work of the stream.
  void (*finish)(int64_t stream);
};

using HostRuntimeEntry = const HostRuntime* (*)();

}  // namespace st::simulated
