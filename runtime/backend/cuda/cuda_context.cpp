#include "backend/cuda/cuda_context.h"

#include "backend/cuda/runtime_status.h"

namespace st::cuda {
namespace {

/// The driver's errors have the numbers of the runtime's, whose words these are.
void must_of_driver(CUresult result, std::string_view called) { must(static_cast<cudaError_t>(result), called); }

}  // namespace

DeviceContext::DeviceContext(const Driver& driver, int index) : driver_(driver), index_(index) {
  must_of_driver(driver_.cuDeviceGet(&device_, index), "cuDeviceGet");
  must_of_driver(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
}

CurrentDevice::CurrentDevice(const DeviceContext& of) : of_(of) {
  must_of_driver(push(), "cuCtxPushCurrent");
  is_pushed_ = true;
}

CurrentDevice::CurrentDevice(const DeviceContext& of, std::nothrow_t) noexcept : of_(of), is_pushed_(push() == CUDA_SUCCESS) {}

CurrentDevice::~CurrentDevice() {
  CUcontext own = nullptr;
  if (is_pushed_) of_.driver_.cuCtxPopCurrent(&own);
}

}  // namespace st::cuda
