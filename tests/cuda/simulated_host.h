// A program of the host's that has CUDA's runtime itself: memory and streams of the simulated device, by a table that
// libscaletrain_cuda_simulated.so exports as st_simulated_host_v1. Devices are counted from 0.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>

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
  /// Makes a context that is no device's primary one, as PyCUDA does, the current one of this thread; and the one before again, saying
  /// whether it was still current.
  void (*push_context)(int device);
  bool (*pop_context)();
  /// Bits by device: those whose primary context there is.
  uint32_t (*contexts)();
  /// Launches of kernels that were not loaded, so far in this process.
  int64_t (*cold_launches)();
};

using HostRuntimeEntry = const HostRuntime* (*)();

/// That of the plug-in at SCALETRAIN_BACKEND_PATH, which the library loads too.
inline const HostRuntime& host_runtime() {
  static const HostRuntime& found = []() -> const HostRuntime& {
    void* const plugin = dlopen(std::getenv("SCALETRAIN_BACKEND_PATH"), RTLD_NOW);
    const auto entry = plugin == nullptr ? nullptr : reinterpret_cast<HostRuntimeEntry>(dlsym(plugin, "st_simulated_host_v1"));
    if (entry == nullptr) throw std::runtime_error("SCALETRAIN_BACKEND_PATH must name libscaletrain_cuda_simulated.so");
    return *entry();
  }();
  return found;
}

}  // namespace st::simulated
