// Copies elements as bytes, whatever their dtype.
#pragma once

#include <cstring>

#include "backend/reference/reference_kernels.h"
#include "backend/reference/strides.h"

namespace st::reference {

/// Copies `n` elements, from element `at` of x to element `to` of y.
inline void move(const Operand& x, int64_t at, const Operand& y, int64_t to, int64_t n) {
  const int64_t width = bytes_of(x.dtype);
  if (n > 0) std::memcpy(as<std::byte>(y) + to * width, as<std::byte>(x) + at * width, static_cast<size_t>(n * width));
}

/// y = x read with `strides`, one per dimension of y.
inline void move_strided(const Operand& x, const Strides& strides, const Operand& y) {
  for (int64_t i = 0; i < y.elements(); ++i) move(x, place(i, y.shape, strides), y, i, 1);
}

/// Copies `n` slices along `axis`, from slice `from` of x to slice `to` of y; both agree in all other dimensions.
inline void move_slices(const Operand& x, int64_t from, const Operand& y, int64_t to, int64_t n, int32_t axis) {
  const Around x_around(x.shape, axis), y_around(y.shape, axis);
  for (int64_t o = 0; o < x_around.outer; ++o) move(x, x_around.at(o, from, 0), y, y_around.at(o, to, 0), n * x_around.inner);
}

}  // namespace st::reference
