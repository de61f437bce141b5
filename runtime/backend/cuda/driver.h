// NVIDIA's driver, libcuda.so.1: the functions of it that we call, found at run time.
#pragma once

#include <cuda.h>

#include <string>

namespace st::cuda {

/// The name that a library exports for a function: the toolkit's headers make macros of names whose interface has changed
/// (cuDeviceTotalMem is cuDeviceTotalMem_v2), which this follows.
#define ST_CUDA_NAME(function) #function

#define ST_DRIVER_FUNCTIONS(ROW) \
  ROW(cuInit)                    \
  ROW(cuGetErrorName)            \
  ROW(cuGetErrorString)          \
  ROW(cuDeviceGetCount)          \
  ROW(cuDeviceGet)               \
  ROW(cuDeviceGetName)           \
  ROW(cuDeviceGetAttribute)      \
  ROW(cuDeviceTotalMem)          \
  ROW(cuDevicePrimaryCtxRetain)  \
  ROW(cuCtxPushCurrent)          \
  ROW(cuCtxPopCurrent)

/// The driver of this process, initialised.
struct Driver {
#define ST_MEMBER(function) decltype(&::function) function = nullptr;
  ST_DRIVER_FUNCTIONS(ST_MEMBER)
#undef ST_MEMBER
  int version = 0;  // the newest CUDA that it runs: 13000 is 13.0

  /// Throws unavailable, with what was called and the driver's name and words for the error.
  void must(CUresult result, const char* called) const;
};

/// "13.0" of 13000.
std::string cuda_version_text(int version);

/// Loads and initialises it. Throws unavailable with one line that says what is wrong and the way out: no driver, one that is older than
/// this plug-in needs, a function that it lacks, no device, what initialising returned.
Driver load_driver();

}  // namespace st::cuda
