// The storage types of elements by their dtype, for host code that chooses a kernel.
#pragma once

#include <cstdint>

#include "backend/cuda/vectors.cuh"
#include "base/dtype.h"
#include "base/error.h"
#include "ir/op.h"

namespace st::cuda {

[[noreturn]] inline void fail_for(Op op, DType dtype) {
  fail(Code::unsupported, text(name_of(op), ": device cuda does not compute it in ", dtype, "; cast first"));
}

/// Calls body(T{}) with the storage type. Throws unsupported if the dtype is not floating point.
template <class Body>
void with_floating(Op op, DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32:
      return body(float{});
    case DType::f64:
      return body(double{});
    case DType::bf16:
      return body(Bf16{});
    case DType::f16:
      return body(F16{});
    default:
      fail_for(op, dtype);
  }
}

/// Calls body(Bits{}) with the unsigned integer of an element's size.
template <class Body>
void with_bits_of(DType dtype, const Body& body) {
  switch (bytes_of(dtype)) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    default:
      return body(uint64_t{});
  }
}

}  // namespace st::cuda
