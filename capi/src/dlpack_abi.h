// DLPack's memory layout, version 0.x (without a version field): the content of a capsule named "dltensor". The authoritative definition is
// https://github.com/dmlc/dlpack, include/dlpack/dlpack.h (Apache-2.0). It is repeated here, under the same names, so that no one needs
// that header. Its enumerations are as wide as an int.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;  // 1 except for vector types
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: contiguous row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);  // NULL: nothing to release
};

namespace st::capi {

/// DLDeviceType by number; "" where DLPack 1.2 has none.
constexpr std::array<std::string_view, 19> kDlpackDevices = {
    "",        "kDLCPU",      "kDLCUDA",   "kDLCUDAHost",    "kDLOpenCL", "",          "",           "kDLVulkan", "kDLMetal", "kDLVPI",
    "kDLROCM", "kDLROCMHost", "kDLExtDev", "kDLCUDAManaged", "kDLOneAPI", "kDLWebGPU", "kDLHexagon", "kDLMAIA",   "kDLTrn"};
constexpr int32_t kDlpackCpu = 1, kDlpackCuda = 2, kDlpackCudaHost = 3;  // the last is pinned, but still host memory

/// "kDLCUDA (2)"; "99, which has no name here".
inline std::string name_of_dlpack_device(int32_t type) {
  const bool named = type > 0 && type < static_cast<int32_t>(kDlpackDevices.size()) && !kDlpackDevices[static_cast<size_t>(type)].empty();
  if (!named) return std::to_string(type) + ", which has no name here";
  return std::string(kDlpackDevices[static_cast<size_t>(type)]) + " (" + std::to_string(type) + ")";
}

}  // namespace st::capi
