// Launches of elementwise kernels, for their host code alone.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/pointwise.cuh"
#include "backend/kernel_side.h"
#include "base/error.h"

#include <device/launch.h>

namespace st::cuda {

template <class Y, class... X, class F, class... Operands>
void launch_pointwise(StreamHandle stream, const F& f, const Operand& y, const Operands&... x) {
  constexpr int kInputs = sizeof...(X);
  constexpr int kEach = kWidth<Y, X...>;
  void (*const kernel)(F, Y*, Walk<kInputs>, int64_t, const X*...) = pointwise<F, Y, X...>;
  launch(stream, {blocks_for(y.elements(), kEach), kBlock}, kernel, f, as<Y>(y), walk_of<kInputs>(y.shape, {&x.shape...}), y.elements(),
         as<const X>(x)...);
}

[[noreturn]] inline void fail_for(Op op, DType dtype) {
  fail(Code::unsupported, text(name_of(op), ": device cuda does not compute it in ", dtype, "; cast first"));
}

/// Calls body(T{}) for a floating type.
template <class Body>
void with_float(Op op, DType dtype, const Body& body) {
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

}  // namespace st::cuda
