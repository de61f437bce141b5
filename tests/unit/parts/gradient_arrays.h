// A host's gradients for tests, of any type and strides.
#pragma once

#include <array>
#include <limits>
#include <vector>

#include "base/float16.h"
#include "base/float_mode.h"
#include "parts/gradient_array.h"

namespace st {

constexpr float kInf = std::numeric_limits<float>::infinity();

template <class T>
GradientArray array(DType dtype, std::vector<T>& values) {
  return {.dtype = dtype, .shape = {std::ssize(values)}, .strides = {1}, .data = values.data()};
}

struct StridedCase {
  Shape shape;
  std::array<int64_t, kMaxDims> strides;
};

/// Rows with a gap, columns with gaps, transposed with and without gaps, a middle dimension of size 1, whose stride has no meaning.
inline const std::vector<StridedCase> kStridedCases = {
    {{5, 3}, {4, 1}}, {{5, 3}, {9, 2}}, {{3, 5}, {1, 4}}, {{3, 5}, {1, 3}}, {{5, 1, 3}, {4, 1000, 1}}};

}  // namespace st
