// Positions of elements in row-major tensors: strides, broadcasting, and a tensor seen as [outer, axis, inner].
#pragma once

#include <array>
#include <cstdint>

#include "base/shape.h"

namespace st::reference {

using Strides = std::array<int64_t, kMaxDims>;

inline Strides strides_of(const Shape& shape) {
  Strides strides{};
  int64_t stride = 1;
  for (int32_t axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

/// Strides of `shape` broadcast to `to` (aligned at the right): 0 where a dimension of size 1 repeats.
inline Strides stretched(const Shape& shape, const Shape& to) {
  const Strides own = strides_of(shape);
  const int32_t missing = to.rank() - shape.rank();
  Strides strides{};
  for (int32_t axis = 0; axis < shape.rank(); ++axis) {
    const auto from = static_cast<size_t>(axis);
    strides[from + static_cast<size_t>(missing)] = shape[axis] == 1 && to[axis + missing] != 1 ? 0 : own[from];
  }
  return strides;
}

/// The position under `strides` of element `i`, in row-major order, of a tensor of `shape`.
inline int64_t place(int64_t i, const Shape& shape, const Strides& strides) {
  int64_t at = 0;
  for (int32_t axis = shape.rank() - 1; axis >= 0; --axis) {
    at += i % shape[axis] * strides[static_cast<size_t>(axis)];
    i /= shape[axis];
  }
  return at;
}

/// A tensor seen around one axis: element (o, a, i) is at (o * axis + a) * inner + i.
struct Around {
  int64_t outer, axis, inner;

  Around(const Shape& shape, int32_t at) : outer(shape.elements(0, at)), axis(shape[at]), inner(shape.elements(at + 1, shape.rank())) {}

  int64_t at(int64_t o, int64_t a, int64_t i) const { return (o * axis + a) * inner + i; }
};

}  // namespace st::reference
