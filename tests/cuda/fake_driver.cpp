// libcuda.so.1 of a machine that is not there, by the toolkit's own declarations. ST_FAKE_DRIVER says which machine:
//   "" one H100; two; newer (of capabilities 8.9 and 10.3); mixed (a V100 and an A100); old; silent (no version); none; volta; prohibited;
//   exclusive; mig; stub; mismatch; broken (an attribute fails)
// Devices are those that CUDA_VISIBLE_DEVICES leaves, as far as it hides all. Compiled with ST_LACKS_NAME it has no cuDeviceGetName.
#include <cuda.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is(std::string_view kind) { return environment("ST_FAKE_DRIVER") == kind; }

bool is_hidden() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && (*visible == '\0' || std::string_view(visible) == "-1");
}

int count() { return is("none") || is_hidden() ? 0 : is("two") || is("newer") || is("mixed") ? 2 : 1; }

bool is_volta(CUdevice device) { return is("volta") || (is("mixed") && device == 0); }

struct Fact {
  CUdevice_attribute which;
  int h100, a100, volta, mig;
};

// As the drivers of these devices report them.
constexpr Fact kFacts[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9, 8, 7, 9},
                           {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0, 0, 0, 0},
                           {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132, 108, 80, 16},
                           {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536, 65536, 65536, 65536},
                           {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472, 167936, 98304, 233472},
                           {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448, 166912, 98304, 232448},
                           {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800, 41943040, 6291456, 6553600},
                           {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000, 1215000, 877000, 2619000},
                           {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120, 5120, 4096, 640}};

}  // namespace

extern "C" {

CUresult cuDriverGetVersion(int* version) {
  if (is("silent")) return CUDA_ERROR_UNKNOWN;
  *version = is("old") ? 12040 : 13010;
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned) {
  if (is("stub")) return CUDA_ERROR_STUB_LIBRARY;
  if (is("mismatch")) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  return count() == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  if (error != CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) return CUDA_ERROR_INVALID_VALUE;
  *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** words) {
  if (error != CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) return CUDA_ERROR_INVALID_VALUE;
  *words = "system has unsupported display driver / cuda driver combination";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* devices) {
  *devices = count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int index) {
  if (index < 0 || index >= count()) return CUDA_ERROR_INVALID_DEVICE;
  *device = index;
  return CUDA_SUCCESS;
}

#ifndef ST_LACKS_NAME
CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  const char* const said = is_volta(device) ? "Tesla V100-SXM2-16GB"
                           : is("mig")      ? "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
                           : device == 0    ? "NVIDIA H100 80GB HBM3"
                                            : "NVIDIA A100-SXM4-40GB";
  std::strncpy(name, said, static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
#endif

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  *bytes = is_volta(device) ? 16935682048 : is("mig") ? 10468982784 : device == 0 ? 85017493504 : 42297786368;
  return CUDA_SUCCESS;
}

/// No machine is there to have one.
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = nullptr;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext) { return CUDA_SUCCESS; }

CUresult cuCtxPopCurrent(CUcontext*) { return CUDA_SUCCESS; }

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  if (is("broken")) return CUDA_ERROR_UNKNOWN;
  if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) {
    *value = is("prohibited") ? CU_COMPUTEMODE_PROHIBITED : is("exclusive") ? CU_COMPUTEMODE_EXCLUSIVE_PROCESS : CU_COMPUTEMODE_DEFAULT;
    return CUDA_SUCCESS;
  }
  if (is("newer") && which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
    *value = device == 0 ? 8 : 10;
    return CUDA_SUCCESS;
  }
  if (is("newer") && which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
    *value = device == 0 ? 9 : 3;
    return CUDA_SUCCESS;
  }
  for (const Fact& fact : kFacts)
    if (fact.which == which) {
      *value = is_volta(device) ? fact.volta : is("mig") ? fact.mig : device == 0 ? fact.h100 : fact.a100;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
