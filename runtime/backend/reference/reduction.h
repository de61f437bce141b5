// The loop of sum, mean and max: each output element is computed from its elements of x in row-major order.
#pragma once

#include <array>

#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/strides.h"

namespace st::reference {

/// Attribute axes: the reduced axes; empty: all.
struct Reduction {
  Shape kept, gone;
  Strides kept_strides{}, gone_strides{};

  Reduction(const Shape& x, const Ints& axes) {
    std::array<bool, kMaxDims> goes{};
    if (axes.empty()) goes.fill(true);
    for (const int64_t axis : axes) goes[static_cast<size_t>(normalize_axis("reduce", axis, x.rank()))] = true;
    const Strides strides = strides_of(x);
    for (int32_t axis = 0; axis < x.rank(); ++axis) {
      const bool this_goes = goes[static_cast<size_t>(axis)];
      Shape& shape = this_goes ? gone : kept;
      (this_goes ? gone_strides : kept_strides)[static_cast<size_t>(shape.rank())] = strides[static_cast<size_t>(axis)];
      shape.push_back(x[axis]);
    }
  }
};

/// y = result(n, element), where element(j) is the j-th of the n elements reduced to y.
template <class Result>
void reduce(const Call& call, Result result) {
  const Operand &x = call.in[0], &y = call.out[0];
  const Reduction over(x.shape, call.attrs->ints("axes"));
  const int64_t n = over.gone.elements();
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t first = place(i, over.kept, over.kept_strides);
    set(y, i, result(n, [&](int64_t j) { return get(x, first + place(j, over.gone, over.gone_strides)); }));
  }
}

}  // namespace st::reference
