// The structs of DLPack 1.x that are used here, and the names of its devices: https://dmlc.github.io/dlpack/latest/c_api.html. A foreign
// ABI, so do not change them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

extern "C" {

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
}

namespace scaletrain {

/// DLDeviceType by number; "" where DLPack 1.2 has none.
constexpr std::array<const char*, 19> kDlpackDevices = {
    "",        "kDLCPU",      "kDLCUDA",   "kDLCUDAHost",    "kDLOpenCL", "",          "",           "kDLVulkan", "kDLMetal", "kDLVPI",
    "kDLROCM", "kDLROCMHost", "kDLExtDev", "kDLCUDAManaged", "kDLOneAPI", "kDLWebGPU", "kDLHexagon", "kDLMAIA",   "kDLTrn"};
constexpr int64_t kDlpackCpu = 1, kDlpackCudaHost = 3;  // the second is pinned, but still host memory

/// "kDLCUDA (2)"; "99, which has no name here".
inline std::string name_of_dlpack_device(int64_t type) {
  const bool named = type > 0 && type < static_cast<int64_t>(kDlpackDevices.size()) && *kDlpackDevices[static_cast<size_t>(type)] != '\0';
  if (!named) return std::to_string(type) + ", which has no name here";
  return std::string(kDlpackDevices[static_cast<size_t>(type)]) + " (" + std::to_string(type) + ")";
}

}  // namespace scaletrain
