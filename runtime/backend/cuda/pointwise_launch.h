// Launches of elementwise kernels, for their host code alone.
#pragma once

#include "backend/cuda/element_types.h"
#include "backend/cuda/pointwise.cuh"
#include "backend/kernel_call.h"
#include "backend/kernel_side.h"

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

}  // namespace st::cuda
