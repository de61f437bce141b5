// The primary context of a device, which is the one that CUDA's runtime has of it, and whose turn it is on a thread.
#pragma once

#include <memory>
#include <new>

#include "backend/cuda/driver.h"

namespace st::cuda {

/// A primary context, made where there is none. It is never given back or reset: what CUDA's runtime has loaded in it would be lost.
class DeviceContext {
 public:
  /// The context of device `index`. Throws unavailable or out_of_memory with the driver's error.
  DeviceContext(const Driver& driver, int index);
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  int index() const { return index_; }

 private:
  friend class CurrentDevice;

  const Driver driver_;
  const int index_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

/// Held by all that has memory, streams or events of the device, which may outlive the backend.
using HeldContext = std::shared_ptr<const DeviceContext>;

/// Makes a device's context the current one of this thread for its lifetime; the thread then has the one before again, a host's own
/// (PyCUDA's, a video library's) or none. Every call of CUDA's runtime is within one, those that free and those on a stream too: the
/// runtime would make the context of GPU 0, of half a GB, for a thread that has none. cudaSetDevice, which makes contexts and forgets
/// those that are no device's primary one, is called nowhere. Two calls of the driver, which touch no device and may come within a
/// capture.
class CurrentDevice {
 public:
  explicit CurrentDevice(const DeviceContext& of);
  /// For what may not throw. Where the driver has no context any more, in a process that ends, the calls fail too.
  CurrentDevice(const DeviceContext& of, std::nothrow_t) noexcept;
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  CUresult push() const noexcept { return of_.driver_.cuCtxPushCurrent(of_.context_); }

  const DeviceContext& of_;
  bool is_pushed_ = false;
};

}  // namespace st::cuda
