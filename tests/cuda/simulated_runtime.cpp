#include "simulated_runtime.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>

#include "device/device_memory.h"
#include "simulated_calls.h"
#include "simulated_contexts.h"

namespace st::simulated {
namespace {

/// Waits for all streams of the device, except those that are captured.
cudaError_t finish_all(Runtime& all, int device) {
  if (const auto found = all.defaults.find(device); found != all.defaults.end())
    if (const cudaError_t status = finish(all, found->second.get()); status != cudaSuccess) return status;
  for (const cudaStream_t stream : all.streams)
    if (stream->device == device && !stream->capture)
      if (const cudaError_t status = finish(all, stream); status != cudaSuccess) return status;
  return cudaSuccess;
}

/// The range that has all these bytes; null: none.
const Range* range_of(const Runtime& all, const void* place, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(place);
  const auto behind = all.ranges.upper_bound(at);
  if (behind == all.ranges.begin()) return nullptr;
  const auto& [begin, range] = *std::prev(behind);
  return at + bytes <= begin + static_cast<uintptr_t>(range.bytes) ? &range : nullptr;
}

bool is_on_device(const Runtime& all, const void* place, size_t bytes) {
  const Range* const range = range_of(all, place, bytes);
  return range != nullptr && range->device >= 0;
}

std::byte* touchable(const void* device) {
  return reinterpret_cast<std::byte*>(device_memory::for_kernels({reinterpret_cast<uintptr_t>(device)}).at);
}

int64_t used(const Runtime& all, int device) {
  int64_t bytes = 0;
  for (const auto& [at, range] : all.ranges) bytes += range.device == device ? range.bytes : 0;
  return bytes;
}

cudaError_t copy(Runtime& all, void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
             from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (is_on_device(all, to, bytes) != to_device || is_on_device(all, from, bytes) != from_device) return cudaErrorInvalidValue;
  const auto move = [=] { std::memcpy(to_device ? touchable(to) : to, from_device ? touchable(from) : from, bytes); };
  if (stream->capture && range_of(all, to_device ? from : to, bytes) == nullptr) return cudaErrorStreamCaptureUnsupported;
  const void* const host = !to_device ? to : !from_device ? from : nullptr;
  if (host != nullptr && range_of(all, host, bytes) == nullptr) {  // not pinned: the call waits
    if (const cudaError_t status = finish(all, stream); status != cudaSuccess) return status;
    move();
    return cudaSuccess;
  }
  stream->give(move);
  return cudaSuccess;
}

}  // namespace

Runtime& runtime() {
  static Runtime& all = *new Runtime;
  return all;
}

cudaError_t finish(Runtime& all, cudaStream_t stream) {
  if (stream->capture) return cudaErrorStreamCaptureUnsupported;
  try {
    stream->engine->finish(*stream->queue);
    return cudaSuccess;
  } catch (const std::exception& why) {
    all.failure = why.what();
    return all.lasting = cudaErrorLaunchFailure;
  }
}

cudaStream_t stream_of(Runtime& all, cudaStream_t handle) {
  if (handle != cudaStreamLegacy && handle != cudaStreamPerThread) return handle;
  auto& made = all.defaults[current_device()];
  if (!made) made.reset(new CUstream_st{.engine = all.engine, .device = current_device()});
  return made.get();
}

bool fails(Runtime& all) {
  if (all.allocations_left == 0 || --all.allocations_left != 0) return false;
  return all.has_failed = true;
}

void start_runtime(const RuntimeSettings& settings) {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  all.settings = settings;
  all.defaults.clear();
  all.captures.clear();
  all.engine = std::make_shared<StreamEngine>(settings.order);
  all.allocations_left = 0;
  all.has_failed = false;
  all.last = all.lasting = cudaSuccess;
  all.failure.clear();
  contexts().restart();
  thread_contexts.clear();
}

void fail_allocation(int64_t n) {
  const Lock lock(runtime().mutex);
  runtime().allocations_left = n;
  runtime().has_failed = false;
}

bool is_failing() {
  const Lock lock(runtime().mutex);
  return fails(runtime());
}

bool has_allocation_failed() { return runtime().has_failed; }

int64_t live_objects() {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  return static_cast<int64_t>(all.ranges.size() + all.streams.size() + all.captures.size()) + all.events + all.graphs;
}

ResourceCalls resource_calls() {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  return all.calls;
}

int device_count() { return runtime().settings.devices; }

std::string kernel_failure() { return runtime().failure; }

}  // namespace st::simulated

using namespace st::simulated;

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  return called_without_context([&](Runtime&) {
    *device = current_device();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return called_without_context([&](const Runtime& all) {
    if (device < 0 || device >= all.settings.devices) return cudaErrorInvalidDevice;
    make_current(device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetLastError() {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  const cudaError_t last = all.last;
  all.last = all.lasting;
  return last;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return called([&](const Runtime& all) {
    *total = static_cast<size_t>(all.settings.memory);
    *free = static_cast<size_t>(all.settings.memory - used(all, current_device()));
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  return counted([&](Runtime& all) {
    if (is_capturing(all)) return cudaErrorStreamCaptureUnsupported;
    if (fails(all) || used(all, current_device()) + static_cast<int64_t>(bytes) > all.settings.memory) return cudaErrorMemoryAllocation;
    const st::Address at = st::device_memory::allocate(static_cast<int64_t>(bytes));
    *data = reinterpret_cast<void*>(at.at);
    std::memset(touchable(*data), 0xFF, bytes);  // what was there before
    all.ranges[at.at] = {static_cast<int64_t>(bytes), current_device(), -1};
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* data) {
  return counted([&](Runtime& all) {
    if (is_capturing(all)) return cudaErrorStreamCaptureUnsupported;
    const auto found = all.ranges.find(reinterpret_cast<uintptr_t>(data));
    if (found == all.ranges.end() || found->second.device < 0) return cudaErrorInvalidValue;
    if (const cudaError_t status = finish_all(all, found->second.device); status != cudaSuccess) return status;
    st::device_memory::free({found->first}, found->second.bytes);
    all.ranges.erase(found);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** data, size_t bytes) {
  return counted([&](Runtime& all) {
    if (is_capturing(all)) return cudaErrorStreamCaptureUnsupported;
    if (fails(all)) return cudaErrorMemoryAllocation;
    *data = std::malloc(bytes);
    std::memset(*data, 0xFF, bytes);
    all.ranges[reinterpret_cast<uintptr_t>(*data)] = {static_cast<int64_t>(bytes), -1, current_device()};
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* data) {
  return counted([&](Runtime& all) {
    if (is_capturing(all)) return cudaErrorStreamCaptureUnsupported;
    const auto found = all.ranges.find(reinterpret_cast<uintptr_t>(data));
    if (found == all.ranges.end()) return cudaErrorInvalidValue;
    finish_all(all, found->second.owner);
    all.ranges.erase(found);
    std::free(data);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return given_to(stream, [&](Runtime& all, cudaStream_t queue) { return copy(all, to, from, bytes, kind, queue); });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return given_to(stream, [&](const Runtime& all, cudaStream_t queue) {
    if (!is_on_device(all, to, bytes)) return cudaErrorInvalidValue;
    queue->give([=] { std::memset(touchable(to), value, bytes); });
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return counted([&](Runtime& all) {
    if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;  // one that waits for the null stream
    if (fails(all)) return cudaErrorMemoryAllocation;
    *stream = new CUstream_st{.engine = all.engine, .device = current_device()};
    all.streams.insert(*stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  need_context();
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  if (all.streams.erase(stream) == 0) return told(cudaErrorInvalidResourceHandle);
  if (const std::shared_ptr<Capture> capture = stream->capture) {
    capture->is_valid = false;
    if (capture->origin == stream) end_capture(all, capture);
    capture->streams.erase(stream);
  }
  delete stream;
  return told(all.lasting);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return called([&](const Runtime& all) {
    if (!all.streams.contains(stream)) return cudaErrorInvalidResourceHandle;
    *device = stream->device;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* place) {
  return called([&](const Runtime& all) {
    *attributes = {};
    const Range* const range = range_of(all, place, 1);
    attributes->type = range == nullptr ? cudaMemoryTypeUnregistered : range->device < 0 ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    attributes->device = range == nullptr ? -2 : range->device;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return given_to(stream, [](Runtime& all, cudaStream_t queue) { return finish(all, queue); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  return counted([&](Runtime& all) {
    if (fails(all)) return cudaErrorMemoryAllocation;
    *event = new CUevent_st{.device = current_device()};
    ++all.events;
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  need_context();
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  --all.events;
  delete event;
  return told(all.lasting);
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int room, int device) {
  return called_without_context([&](const Runtime& all) {
    if (device < 0 || device >= all.settings.devices) return cudaErrorInvalidDevice;
    std::snprintf(text, static_cast<size_t>(room), "0000:%02x:00.0", device + 1);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

/// A simulated device has no times.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t /*begin*/, cudaEvent_t /*end*/) {
  *milliseconds = 1;
  return cudaSuccess;
}

}  // extern "C"
