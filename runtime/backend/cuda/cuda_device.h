// A device of CUDA's runtime: its memory, and copies that the host waits for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "backend/cuda/cuda_context.h"
#include "backend/cuda/cuda_stream.h"

namespace st::cuda {

/// Safe to call from several threads.
class CudaDevice {
 public:
  /// Buffers are counted by `memory`. Throws unavailable with the runtime's words.
  CudaDevice(HeldContext context, std::shared_ptr<MemorySource> memory);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string name() const;  // "cuda:1"

  /// Zeroed, 256-byte aligned, counted as `role`; may outlive the device object. Throws out_of_memory with the requested and the free
  /// bytes.
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryRole role);
  /// Counted as `inputs`. Throws out_of_memory.
  std::unique_ptr<PinnedMemory> allocate_pinned(int64_t bytes);
  // The same for what belongs to a stream or the device itself, which nobody counts, like the memory that CUDA takes for them.
  std::unique_ptr<Buffer> allocate_uncounted(int64_t bytes);
  std::unique_ptr<PinnedMemory> pin_uncounted(int64_t bytes);
  /// Zeroed, counted as `host`; may outlive the device object. Throws out_of_memory with the requested and the available bytes.
  std::unique_ptr<Buffer> allocate_on_host(int64_t bytes);
  int64_t free_bytes() const;
  /// Whether these bytes are in one buffer that was allocated here and is still there.
  bool holds(Address place, int64_t bytes) const;
  /// Whether they are memory of this device, whoever allocated it: of their first and last byte.
  bool reaches(Address place, int64_t bytes) const;

  std::unique_ptr<CudaStream> make_stream() const;
  std::unique_ptr<CudaEvent> make_event() const;

  /// As in Backend: copies now, in no order with the work of streams, of memory of the device or of allocate_on_host(). `host` is any
  /// memory of the host's.
  void to_host(void* host, Address device, int64_t bytes);
  void to_device(Address device, const void* host, int64_t bytes);
  void copy(Address to, Address from, int64_t bytes);
  void zero(Address device, int64_t bytes);

 private:
  class Allocations;

  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryRole role, std::shared_ptr<MemorySource> source);
  std::unique_ptr<PinnedMemory> pin(int64_t bytes, MemoryRole role, std::shared_ptr<MemorySource> source) const;
  std::byte* on_host(Address place) const;

  const HeldContext context_;
  std::shared_ptr<MemorySource> memory_, uncounted_;
  std::shared_ptr<Allocations> allocations_, on_host_;
  std::unique_ptr<CudaStream> copies_;
};

}  // namespace st::cuda
