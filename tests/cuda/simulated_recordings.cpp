// Events and recordings of the simulated runtime. Errors within a capture are those of CUDA 13 by its programming guide and driver_types.h.
#include <cuda_runtime_api.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "simulated_calls.h"

struct CUgraphExec_st {
  CUgraph_st graph;
};

namespace st::simulated {

bool is_capturing(Runtime& all) {
  bool any = false;
  for (const auto& capture : all.captures) {
    if (capture->thread != std::this_thread::get_id()) continue;
    capture->is_valid = false;
    any = true;
  }
  return any;
}

void end_capture(Runtime& all, const std::shared_ptr<Capture>& capture) {
  for (auto& [stream, reached] : capture->streams) stream->capture = nullptr;
  std::erase(all.captures, capture);
}

namespace {

/// The host asks for an event.
template <class Call>
cudaError_t asked_of(cudaEvent_t event, const Call& call) {
  return called([&](Runtime& all) {
    if (!event->capture) return call(all);
    event->capture->is_valid = false;
    return cudaErrorCapturedEvent;
  });
}

/// Ends a graph, captured or instantiated.
template <class Graph>
cudaError_t destroyed(Graph* graph) {
  need_context();
  const Lock lock(runtime().mutex);
  --runtime().graphs;
  delete graph;
  return told(runtime().lasting);
}

}  // namespace
}  // namespace st::simulated

using namespace st::simulated;

extern "C" {

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return given_to(stream, [&](const Runtime&, cudaStream_t queue) {
    if (event->device != queue->device) return cudaErrorInvalidResourceHandle;
    event->capture = queue->capture;
    if (queue->capture)
      event->reached = queue->capture->streams[queue];
    else
      queue->engine->record(*queue->queue, event->point);
    return cudaSuccess;
  });
}

/// An event of a capture takes the stream into it. Only one with the flag for external events may be of none, which nobody asks for here.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return given_to(stream, [&](const Runtime& all, cudaStream_t queue) {
    const std::shared_ptr<Capture>& capture = event->capture;
    if (!capture && queue->capture) return cudaErrorStreamCaptureIsolation;
    if (!capture) {
      if (!all.settings.forgets_waits) queue->engine->wait(*queue->queue, event->point);
      return cudaSuccess;
    }
    if (!capture->graph) return cudaErrorCapturedEvent;  // it has ended
    if (!capture->is_valid) return cudaErrorStreamCaptureInvalidated;
    if (queue->capture && queue->capture != capture) {
      capture->is_valid = false;
      return cudaErrorStreamCaptureMerge;
    }
    queue->capture = capture;
    capture->wait(queue, event->reached);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return called([&](Runtime& all) {
    ++all.calls.recordings;
    if (mode != cudaStreamCaptureModeThreadLocal || stream->capture) return cudaErrorIllegalState;
    stream->capture = std::make_shared<Capture>(
        Capture{.origin = stream, .graph = std::make_unique<CUgraph_st>(CUgraph_st{.works = {}, .device = stream->device})});
    all.captures.push_back(stream->capture);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return called([&](Runtime& all) {
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return cudaErrorIllegalState;
    if (capture->origin != stream || capture->thread != std::this_thread::get_id()) {
      capture->is_valid = false;
      return capture->origin != stream ? cudaErrorStreamCaptureUnmatched : cudaErrorStreamCaptureWrongThread;
    }
    end_capture(all, capture);
    const std::unique_ptr<CUgraph_st> made = std::move(capture->graph);
    if (!capture->is_valid) return cudaErrorStreamCaptureInvalidated;
    if (!capture->is_joined()) return cudaErrorStreamCaptureUnjoined;
    *graph = new CUgraph_st(std::move(*made));
    ++all.graphs;
    all.calls.recorded_works += std::ssize((*graph)->works);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return asked_of(event, [&](Runtime& all) { return all.engine->has_passed(*event->point) ? cudaSuccess : cudaErrorNotReady; });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return asked_of(event, [&](Runtime& all) {
    all.engine->wait(*event->point);
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
  return given_to(stream, [&](const Runtime&, cudaStream_t queue) {
    if (graph->graph.device != queue->device) return cudaErrorInvalidResourceHandle;
    for (const auto& work : graph->graph.works) queue->give(work);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroyed(graph); }

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return destroyed(graph); }

}  // extern "C"
