// A transpose as kernels walk it.
#pragma once

#include <array>
#include <cstdint>

#include "base/shape.h"
#include "ir/op.h"

namespace st {

/// Dimensions of the result y of a transpose of x, with those merged that stay together, and their strides in x and in y, in elements. At
/// least one dimension.
struct Permutation {
  Permutation(const Shape& x, const Ints& order);

  int rank = 0;
  std::array<int64_t, kMaxDims> size{}, x_stride{}, y_stride{};
  int64_t elements = 1;
};

}  // namespace st
