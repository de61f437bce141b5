#include "simulated_driver.h"

#include "simulated_contexts.h"
#include "simulated_runtime.h"

namespace st::simulated {
namespace {

CUresult device_get(CUdevice* device, int index) {
  if (index < 0 || index >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *device = index;
  return CUDA_SUCCESS;
}

CUresult retain(CUcontext* context, CUdevice device) {
  contexts().retain(device);
  *context = contexts().primary(device);
  return CUDA_SUCCESS;
}

CUresult push(CUcontext context) {
  if (context->is_primary && !contexts().is_initialised(context->device)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return thread_contexts.push(context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult pop(CUcontext* context) {
  *context = thread_contexts.pop();
  return *context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

}  // namespace

cuda::HeldContext held_context(int device) {
  cuda::Driver driver;
  driver.cuDeviceGet = device_get;
  driver.cuDevicePrimaryCtxRetain = retain;
  driver.cuCtxPushCurrent = push;
  driver.cuCtxPopCurrent = pop;
  return std::make_shared<cuda::DeviceContext>(driver, device);
}

}  // namespace st::simulated
