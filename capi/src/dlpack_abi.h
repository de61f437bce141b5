// DLPack's memory layout, version 0.x (without a version field): the content of a capsule named "dltensor". The authoritative definition is
// https://github.com/dmlc/dlpack, include/dlpack/dlpack.h (Apache-2.0). It is repeated here, under the same names, so that no one needs
// that header. Its enumerations are as wide as an int.
#pragma once

#include <cstdint>

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
