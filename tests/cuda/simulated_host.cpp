#include "simulated_host.h"

#include <cuda_runtime_api.h>

#include <array>

#include "simulated_contexts.h"

namespace st::simulated {
namespace {

cudaStream_t stream_of(int64_t handle) { return reinterpret_cast<cudaStream_t>(handle); }

/// Runs make(&made) with a device as the current one.
template <class T, class Make>
T made_on(int device, const Make& make) {
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(device);
  T made{};
  const bool is_made = make(&made) == cudaSuccess;
  cudaSetDevice(before);
  return is_made ? made : T{};
}

std::array<CUctx_st, kMostDevices> foreign = [] {
  std::array<CUctx_st, kMostDevices> made;
  for (int device = 0; device < kMostDevices; ++device) made[static_cast<size_t>(device)].device = device;
  return made;
}();

constexpr HostRuntime kRuntime = {
    .allocate =
        [](int device, int64_t bytes) {
          return made_on<void*>(device, [&](void** made) { return cudaMalloc(made, static_cast<size_t>(bytes)); });
        },
    .free = [](void* place) { cudaFree(place); },
    .allocate_pinned =
        [](int64_t bytes) { return made_on<void*>(0, [&](void** made) { return cudaMallocHost(made, static_cast<size_t>(bytes)); }); },
    .free_pinned = [](void* place) { cudaFreeHost(place); },
    .make_stream =
        [](int device) {
          const auto make = [](cudaStream_t* made) { return cudaStreamCreateWithFlags(made, cudaStreamNonBlocking); };
          return static_cast<int64_t>(reinterpret_cast<intptr_t>(made_on<cudaStream_t>(device, make)));
        },
    .end_stream =
        [](int64_t stream) {
          cudaStreamSynchronize(stream_of(stream));
          cudaStreamDestroy(stream_of(stream));
        },
    .to_device = [](int64_t stream, void* to, const void* pinned,
                    int64_t bytes) { cudaMemcpyAsync(to, pinned, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream_of(stream)); },
    .to_host = [](int64_t stream, void* pinned, const void* from,
                  int64_t bytes) { cudaMemcpyAsync(pinned, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream_of(stream)); },
    .finish = [](int64_t stream) { cudaStreamSynchronize(stream_of(stream)); },
    .push_context = [](int device) { thread_contexts.push(&foreign[static_cast<size_t>(device)]); },
    .pop_context =
        [] {
          const CUctx_st* const popped = thread_contexts.pop();
          return popped != nullptr && !popped->is_primary;
        },
    .contexts =
        [] {
          uint32_t bits = 0;
          for (int device = 0; device < kMostDevices; ++device) bits |= contexts().is_initialised(device) ? 1U << device : 0U;
          return bits;
        },
    .cold_launches = [] { return contexts().cold_launches(); }};

}  // namespace
}  // namespace st::simulated

extern "C" __attribute__((visibility("default"))) const st::simulated::HostRuntime* st_simulated_host_v1() {
  return &st::simulated::kRuntime;
}
