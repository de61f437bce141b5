// Streams and events of CUDA's runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "backend/cuda/cuda_context.h"
#include "backend/device_stream.h"

namespace st::cuda {

class CudaEvent : public Event {
 public:
  explicit CudaEvent(HeldContext context);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  /// A fault of a kernel is thrown by the stream's finish() instead.
  void wait() override;
  bool has_passed() override;
  cudaEvent_t handle() const { return event_; }

 private:
  const HeldContext context_;
  cudaEvent_t event_ = nullptr;
};

/// A graph of what was given to a stream, of the device of that stream.
class CudaGraph : public Recording {
 public:
  /// `captured` stays the caller's, who may destroy it afterwards.
  CudaGraph(HeldContext context, cudaGraph_t captured);
  ~CudaGraph() override;
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void launch(Stream& stream) override;

 private:
  const HeldContext context_;
  cudaGraphExec_t graph_ = nullptr;
};

/// Ordered by events alone: it does not wait for the null stream. Events are CudaEvents of the same device.
class CudaStream : public Stream {
 public:
  explicit CudaStream(HeldContext context);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void copy_to_device(Address to, const std::byte* pinned, int64_t bytes) override;
  void copy_to_host(std::byte* pinned, Address from, int64_t bytes) override;
  void copy(Address to, Address from, int64_t bytes) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void finish() override;
  /// A fault of a kernel does not say whose it is.
  const Prepared* failed() const override { return nullptr; }
  /// Recordings are graphs.
  bool can_record() const override { return true; }
  void begin_recording() override;
  std::unique_ptr<Recording> end_recording() override;
  void abandon_recording() noexcept override;

  /// In order with copies. `bytes` of zeros.
  void zero(Address to, int64_t bytes);
  /// For launches, while its device is the current one.
  cudaStream_t handle() const { return stream_; }

 protected:
  const DeviceContext& context() const { return *context_; }

 private:
  void give_copy(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind);

  const HeldContext context_;
  cudaStream_t stream_ = nullptr;
};

/// A stream that the host has made by CUDA's runtime.
class HostsStream : public AdoptedStream {
 public:
  /// `handle`: a cudaStream_t, or one of the default streams (1, 2), which are those of this device. Throws invalid_argument for a
  /// stream of another one.
  HostsStream(int64_t handle, HeldContext context, std::string_view device);

  void record(Event& event) override;
  void wait(const Event& event) override;

 private:
  const HeldContext context_;
  const cudaStream_t stream_;
};

}  // namespace st::cuda
