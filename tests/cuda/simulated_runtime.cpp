#include "simulated_runtime.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <set>

#include "device/device_memory.h"
#include "simulated_stream.h"

struct CUgraphExec_st {
  CUgraph_st graph;
};

struct CUevent_st {
  std::shared_ptr<st::StreamEngine::Point> point = std::make_shared<st::StreamEngine::Point>();
  int device;
};

namespace st::simulated {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

struct Range {
  int64_t bytes;
  int device;      // -1: pinned
  int owner = -1;  // pinned: the device that was current
};

/// One for the process.
struct Runtime {
  std::recursive_mutex mutex;
  RuntimeSettings settings;
  std::shared_ptr<StreamEngine> engine;
  std::map<uintptr_t, Range> ranges;
  std::set<cudaStream_t> streams;
  std::map<int, std::unique_ptr<CUstream_st>> defaults;  // by device, made on first use
  int64_t events = 0, graphs = 0, allocations_left = 0;
  ResourceCalls calls;
  bool has_failed = false;
  cudaError_t last = cudaSuccess, lasting = cudaSuccess;
  std::string failure;
};

Runtime& runtime() {
  static Runtime& all = *new Runtime;
  return all;
}

/// The status of a call: an error is kept for cudaGetLastError().
cudaError_t told(cudaError_t status) {
  if (status != cudaSuccess) runtime().last = status;
  return status;
}

/// A device whose kernel has failed answers every call with that error.
template <class Call>
cudaError_t called(const Call& call) {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  return told(all.lasting != cudaSuccess ? all.lasting : call(all));
}

/// The same of a call that ResourceCalls::resources counts.
template <class Call>
cudaError_t counted(const Call& call) {
  return called([&](Runtime& all) {
    ++all.calls.resources;
    return call(all);
  });
}

cudaError_t finish(Runtime& all, cudaStream_t stream) {
  if (stream->captured) return cudaErrorStreamCaptureUnsupported;
  try {
    stream->engine->finish(*stream->queue);
    return cudaSuccess;
  } catch (const std::exception& why) {
    all.failure = why.what();
    return all.lasting = cudaErrorLaunchFailure;
  }
}

/// The default streams are one.
cudaStream_t stream_of(Runtime& all, cudaStream_t handle) {
  if (handle != cudaStreamLegacy && handle != cudaStreamPerThread) return handle;
  auto& made = all.defaults[current_device];
  if (!made) made.reset(new CUstream_st{.engine = all.engine, .device = current_device});
  return made.get();
}

cudaError_t finish_all(Runtime& all, int device) {
  if (const auto found = all.defaults.find(device); found != all.defaults.end())
    if (const cudaError_t status = finish(all, found->second.get()); status != cudaSuccess) return status;
  for (const cudaStream_t stream : all.streams)
    if (stream->device == device)
      if (const cudaError_t status = finish(all, stream); status != cudaSuccess) return status;
  return cudaSuccess;
}

/// Whether this thread captures a stream: it may then not allocate.
thread_local bool is_capturing = false;

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

/// Whether this allocation is the one that fails.
bool fails(Runtime& all) {
  if (all.allocations_left == 0 || --all.allocations_left != 0) return false;
  return all.has_failed = true;
}

cudaError_t copy(Runtime& all, void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
             from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (is_on_device(all, to, bytes) != to_device || is_on_device(all, from, bytes) != from_device) return cudaErrorInvalidValue;
  const auto move = [=] { std::memcpy(to_device ? touchable(to) : to, from_device ? touchable(from) : from, bytes); };
  if (stream->captured && range_of(all, to_device ? from : to, bytes) == nullptr) return cudaErrorStreamCaptureUnsupported;
  const void* const host = !to_device ? to : !from_device ? from : nullptr;
  if (host != nullptr && range_of(all, host, bytes) == nullptr) {  // not pinned: the call waits
    if (const cudaError_t status = finish(all, stream); status != cudaSuccess) return status;
    move();
    return cudaSuccess;
  }
  stream->give(move);
  return cudaSuccess;
}

struct Words {
  cudaError_t status;
  const char *name, *words;
};
// Those of CUDA 13's runtime.
constexpr Words kWords[] = {
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "operation not permitted in current context state"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"}};

const Words& words_of(cudaError_t status) {
  static constexpr Words kUnknown = {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  for (const Words& words : kWords)
    if (words.status == status) return words;
  return kUnknown;
}

}  // namespace

void start_runtime(const RuntimeSettings& settings) {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  all.settings = settings;
  all.defaults.clear();
  all.engine = std::make_shared<StreamEngine>(settings.order);
  all.allocations_left = 0;
  all.has_failed = false;
  all.last = all.lasting = cudaSuccess;
  all.failure.clear();
  current_device = 0;
}

void fail_allocation(int64_t n) {
  runtime().allocations_left = n;
  runtime().has_failed = false;
}

bool has_allocation_failed() { return runtime().has_failed; }

int64_t live_objects() {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  return static_cast<int64_t>(all.ranges.size() + all.streams.size()) + all.events + all.graphs;
}

ResourceCalls resource_calls() {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  return all.calls;
}

std::string kernel_failure() { return runtime().failure; }

}  // namespace st::simulated

using namespace st::simulated;

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  return called([&](Runtime&) {
    *device = current_device;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return called([&](const Runtime& all) {
    if (device < 0 || device >= all.settings.devices) return cudaErrorInvalidDevice;
    current_device = device;
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

const char* cudaGetErrorName(cudaError_t status) { return words_of(status).name; }

const char* cudaGetErrorString(cudaError_t status) { return words_of(status).words; }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return called([&](const Runtime& all) {
    *total = static_cast<size_t>(all.settings.memory);
    *free = static_cast<size_t>(all.settings.memory - used(all, current_device));
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  return counted([&](Runtime& all) {
    if (is_capturing) return cudaErrorStreamCaptureUnsupported;
    if (fails(all) || used(all, current_device) + static_cast<int64_t>(bytes) > all.settings.memory) return cudaErrorMemoryAllocation;
    const st::Address at = st::device_memory::allocate(static_cast<int64_t>(bytes));
    *data = reinterpret_cast<void*>(at.at);
    std::memset(touchable(*data), 0xFF, bytes);  // what was there before
    all.ranges[at.at] = {static_cast<int64_t>(bytes), current_device, -1};
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* data) {
  return counted([&](Runtime& all) {
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
    if (is_capturing) return cudaErrorStreamCaptureUnsupported;
    if (fails(all)) return cudaErrorMemoryAllocation;
    *data = std::malloc(bytes);
    std::memset(*data, 0xFF, bytes);
    all.ranges[reinterpret_cast<uintptr_t>(*data)] = {static_cast<int64_t>(bytes), -1, current_device};
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* data) {
  return counted([&](Runtime& all) {
    const auto found = all.ranges.find(reinterpret_cast<uintptr_t>(data));
    if (found == all.ranges.end()) return cudaErrorInvalidValue;
    finish_all(all, found->second.owner);
    all.ranges.erase(found);
    std::free(data);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return called([&](Runtime& all) { return copy(all, to, from, bytes, kind, stream_of(all, stream)); });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return called([&](const Runtime& all) {
    if (!is_on_device(all, to, bytes)) return cudaErrorInvalidValue;
    stream->give([=] { std::memset(touchable(to), value, bytes); });
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return counted([&](Runtime& all) {
    if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;  // one that waits for the null stream
    *stream = new CUstream_st{.engine = all.engine, .device = current_device};
    all.streams.insert(*stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  if (all.streams.erase(stream) == 0) return told(cudaErrorInvalidResourceHandle);
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
  return called([&](Runtime& all) { return finish(all, stream_of(all, stream)); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return called([&](Runtime& all) {
    stream = stream_of(all, stream);
    if (stream->captured) return cudaErrorStreamCaptureUnsupported;  // events in recordings are not modelled
    stream->engine->wait(*stream->queue, event->point);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return called([&](Runtime& all) {
    ++all.calls.recordings;
    if (mode != cudaStreamCaptureModeThreadLocal || stream->captured) return cudaErrorIllegalState;
    stream->captured = std::make_unique<CUgraph_st>(CUgraph_st{.works = {}, .device = stream->device});
    ++all.graphs;
    is_capturing = true;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return called([&](Runtime&) {
    if (!stream->captured) return cudaErrorIllegalState;
    *graph = stream->captured.release();
    is_capturing = false;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long /*flags*/) {
  return called([&](Runtime& all) {
    if (fails(all)) return cudaErrorMemoryAllocation;
    *made = new CUgraphExec_st{*graph};
    ++all.graphs;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return called([&](Runtime&) {
    if (graph->graph.device != stream->device) return cudaErrorInvalidResourceHandle;
    for (const auto& work : graph->graph.works) stream->give(work);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Lock lock(runtime().mutex);
  --runtime().graphs;
  delete graph;
  return told(runtime().lasting);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  const Lock lock(runtime().mutex);
  --runtime().graphs;
  delete graph;
  return told(runtime().lasting);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  return counted([&](Runtime& all) {
    *event = new CUevent_st{.device = current_device};
    ++all.events;
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  --all.events;
  delete event;
  return told(all.lasting);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return called([&](Runtime& all) {
    stream = stream_of(all, stream);
    if (event->device != stream->device) return cudaErrorInvalidResourceHandle;
    if (stream->captured) return cudaErrorStreamCaptureUnsupported;
    stream->engine->record(*stream->queue, event->point);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return called([&](Runtime& all) { return all.engine->has_passed(*event->point) ? cudaSuccess : cudaErrorNotReady; });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int room, int device) {
  return called([&](const Runtime& all) {
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

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return called([&](Runtime& all) {
    all.engine->wait(*event->point);
    return cudaSuccess;
  });
}

}  // extern "C"
