// DLPack's memory layout, version 0.x (no version field): what a capsule named "dltensor" holds. The one definition of these structs for
// all libraries is https://github.com/dmlc/dlpack, include/dlpack/dlpack.h (Apache-2.0); written down here so that nobody has to bring that
// header, and with the same names, so that those who do mean the same. Its enumerations are as wide as an int.
#pragma once

#include <cstdint>

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;  // 1 but for vector types
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: row-major without gaps
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);  // NULL: there is nothing to give back
};
