// The state of the simulated runtime, for the files that have its functions (simulated_runtime.cpp, simulated_recordings.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "simulated_contexts.h"
#include "simulated_runtime.h"
#include "simulated_stream.h"

struct CUevent_st {
  std::shared_ptr<st::StreamEngine::Point> point = std::make_shared<st::StreamEngine::Point>();
  int device;
  std::shared_ptr<st::simulated::Capture> capture = {};  // in which it was recorded last; null: outside of captures, or never
  st::simulated::Capture::Reached reached = {};
};

namespace st::simulated {

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
  std::vector<std::shared_ptr<Capture>> captures;
  std::map<int, std::unique_ptr<CUstream_st>> defaults;  // by device, made on first use
  int64_t events = 0, graphs = 0, allocations_left = 0;
  ResourceCalls calls;
  bool has_failed = false;
  cudaError_t last = cudaSuccess, lasting = cudaSuccess;
  std::string failure;
};

Runtime& runtime();

/// The status of a call: an error is kept for cudaGetLastError().
inline cudaError_t told(cudaError_t status) {
  if (status != cudaSuccess) runtime().last = status;
  return status;
}

/// A device whose kernel has failed answers every call with that error.
template <class Call>
cudaError_t called_without_context(const Call& call) {
  Runtime& all = runtime();
  const Lock lock(all.mutex);
  return told(all.lasting != cudaSuccess ? all.lasting : call(all));
}

/// Also those that free, and those of a stream or event that there is.
template <class Call>
cudaError_t called(const Call& call) {
  need_context();
  return called_without_context(call);
}

/// The same of a call that ResourceCalls::resources counts.
template <class Call>
cudaError_t counted(const Call& call) {
  return called([&](Runtime& all) {
    ++all.calls.resources;
    return call(all);
  });
}

/// Waits for the stream's work.
cudaError_t finish(Runtime& all, cudaStream_t stream);
/// The default streams of a device are one.
cudaStream_t stream_of(Runtime& all, cudaStream_t handle);
/// Whether this call, which takes memory, is the one that fails.
bool fails(Runtime& all);
/// Whether this thread captures a stream. The call that asks must not be made then, and has made the capture invalid.
bool is_capturing(Runtime& all);
/// Takes its streams out of the capture.
void end_capture(Runtime& all, const std::shared_ptr<Capture>& capture);

/// The call of a stream: an error within a capture makes all of it invalid, and then each call of its streams returns that.
template <class Call>
cudaError_t given_to(cudaStream_t handle, const Call& call) {
  return called([&](Runtime& all) {
    const cudaStream_t stream = stream_of(all, handle);
    if (stream->capture && !stream->capture->is_valid) return cudaErrorStreamCaptureInvalidated;
    const cudaError_t status = call(all, stream);
    if (status != cudaSuccess && stream->capture) stream->capture->is_valid = false;
    return status;
  });
}

}  // namespace st::simulated
