#include "backend/cuda/cuda_stream.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "backend/cuda/profiler_ranges.h"
#include "backend/cuda/runtime_status.h"
#include "backend/kernel_side.h"
#include "base/error.h"
#include "base/text.h"

namespace st::cuda {

CudaEvent::CudaEvent(HeldContext context) : context_(std::move(context)) {
  const CurrentDevice current(*context_);
  must(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

CudaEvent::~CudaEvent() {
  const CurrentDevice current(*context_, std::nothrow);
  cudaEventDestroy(event_);
}

void CudaEvent::wait() {
  const CurrentDevice current(*context_, std::nothrow);
  const cudaError_t status = cudaEventSynchronize(event_);
  if (status == cudaErrorCapturedEvent) must(status, "cudaEventSynchronize");  // finish() does not know of it
  if (status != cudaSuccess) cudaGetLastError();
}

bool CudaEvent::has_passed() {
  const CurrentDevice current(*context_, std::nothrow);
  const cudaError_t status = cudaEventQuery(event_);
  if (status == cudaErrorCapturedEvent) must(status, "cudaEventQuery");
  if (status != cudaSuccess) cudaGetLastError();  // clears "not ready"
  return status != cudaErrorNotReady;
}

CudaStream::CudaStream(HeldContext context) : context_(std::move(context)) {
  const CurrentDevice current(*context_);
  must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

CudaStream::~CudaStream() {
  const CurrentDevice current(*context_, std::nothrow);
  if (cudaStreamSynchronize(stream_) != cudaSuccess) cudaGetLastError();
  cudaStreamDestroy(stream_);
}

void CudaStream::give_copy(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return;
  const CurrentDevice current(*context_);
  must(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream_), "cudaMemcpyAsync");
}

void CudaStream::copy_to_device(Address to, const std::byte* pinned, int64_t bytes) {
  give_copy(pointer_to(to), pinned, bytes, cudaMemcpyHostToDevice);
}

void CudaStream::copy_to_host(std::byte* pinned, Address from, int64_t bytes) {
  give_copy(pinned, pointer_to(from), bytes, cudaMemcpyDeviceToHost);
}

void CudaStream::copy(Address to, Address from, int64_t bytes) {
  give_copy(pointer_to(to), pointer_to(from), bytes, cudaMemcpyDeviceToDevice);
}

void CudaStream::zero(Address to, int64_t bytes) {
  if (bytes == 0) return;
  const CurrentDevice current(*context_);
  must(cudaMemsetAsync(pointer_to(to), 0, static_cast<size_t>(bytes), stream_), "cudaMemsetAsync");
}

void CudaStream::record(Event& event) {
  const CurrentDevice current(*context_);
  must(cudaEventRecord(static_cast<CudaEvent&>(event).handle(), stream_), "cudaEventRecord");
}

void CudaStream::wait(const Event& event) {
  const CurrentDevice current(*context_);
  must(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).handle(), 0), "cudaStreamWaitEvent");
}

void CudaStream::finish() {
  const CurrentDevice current(*context_);
  must(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

/// Other threads may allocate and wait meanwhile, this one may not.
void CudaStream::begin_recording() {
  const CurrentDevice current(*context_);
  must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
}

std::unique_ptr<Recording> CudaStream::end_recording() {
  const CurrentDevice current(*context_);
  cudaGraph_t captured = nullptr;
  must(cudaStreamEndCapture(stream_, &captured), "cudaStreamEndCapture");
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)> held(captured, cudaGraphDestroy);
  return std::make_unique<CudaGraph>(context_, captured);
}

void CudaStream::abandon_recording() noexcept {
  const CurrentDevice current(*context_, std::nothrow);
  cudaGraph_t captured = nullptr;
  if (cudaStreamEndCapture(stream_, &captured) != cudaSuccess) cudaGetLastError();
  if (captured != nullptr) cudaGraphDestroy(captured);
}

CudaGraph::CudaGraph(HeldContext context, cudaGraph_t captured) : context_(std::move(context)) {
  const CurrentDevice current(*context_);
  must(cudaGraphInstantiate(&graph_, captured, 0), "cudaGraphInstantiate");
}

CudaGraph::~CudaGraph() {
  const CurrentDevice current(*context_, std::nothrow);
  cudaGraphExecDestroy(graph_);
}

void CudaGraph::launch(Stream& stream) {
  const CurrentDevice current(*context_);
  const ProfilerRange range("recording");
  must(cudaGraphLaunch(graph_, static_cast<CudaStream&>(stream).handle()), "cudaGraphLaunch");
}

HostsStream::HostsStream(int64_t handle, HeldContext context, std::string_view device)
    : context_(std::move(context)), stream_(reinterpret_cast<cudaStream_t>(static_cast<intptr_t>(handle))) {
  check(handle > 0, "stream: ", handle, " is no stream; give a cudaStream_t of ", device, ", 1 for its default stream, or -1 for none");
  if (stream_ == cudaStreamLegacy || stream_ == cudaStreamPerThread) return;
  const CurrentDevice current(*context_);
  int of = -1;
  try {
    must(cudaStreamGetDevice(stream_, &of), "cudaStreamGetDevice");
  } catch (const Error& error) {
    fail(Code::invalid_argument, text("stream: ", handle, " is no stream of ", device, " that still exists: ", error.message(),
                                      "; give a cudaStream_t of it, 1 for its default stream, or -1 for none"));
  }
  const int own = context_->index();
  check(of == own, "stream: it is of device ", of, ", but the context is on ", device, "; give a stream of device ", own);
}

void HostsStream::record(Event& event) {
  const CurrentDevice current(*context_);  // whose default streams are meant
  must(cudaEventRecord(static_cast<CudaEvent&>(event).handle(), stream_), "cudaEventRecord");
}

void HostsStream::wait(const Event& event) {
  const CurrentDevice current(*context_);
  must(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).handle(), 0), "cudaStreamWaitEvent");
}

}  // namespace st::cuda
