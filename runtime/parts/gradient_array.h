// A gradient in the host's own memory, and its rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/dtype.h"
#include "base/shape.h"
#include "base/workers.h"

namespace st {

/// A borrowed array of f32, f64, bf16 or f16; no two of its elements share memory.
struct GradientArray {
  DType dtype = DType::f32;
  Shape shape;
  std::array<int64_t, kMaxDims> strides{};  // in elements, not negative
  void* data = nullptr;

  /// Any dimension order will do: a transposed array without gaps is one row too.
  bool has_no_gaps() const {
    int64_t reach = 1;
    for (int32_t d = 0; d < shape.rank(); ++d) reach += (shape[d] - 1) * strides[static_cast<size_t>(d)];
    return reach == shape.elements();
  }
};

/// Calls row(offset, place, count, stride) for every row of a non-empty array: `count` elements, `stride` apart, from `offset`. They are
/// elements [place, place + count) in an order private to the array, the same each time.
template <class Row>
void each_row(const GradientArray& array, Workers& workers, const Row& row) {
  constexpr int64_t kGrain = 1 << 16;  // elements per task: a few dozen microseconds
  if (array.shape.rank() == 0 || array.has_no_gaps()) {
    workers.run_range(array.shape.elements(), kGrain, [&](int64_t begin, int64_t end) { row(begin, begin, end - begin, 1); });
    return;
  }
  const int32_t last = array.shape.rank() - 1;
  const int64_t length = array.shape[last], rows = array.shape.elements(0, last);
  workers.run_range(rows, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t offset = 0, rest = r;
      for (int32_t d = last - 1; d >= 0; --d) {
        offset += rest % array.shape[d] * array.strides[static_cast<size_t>(d)];
        rest /= array.shape[d];
      }
      row(offset, r * length, length, array.strides[static_cast<size_t>(last)]);
    }
  });
}

}  // namespace st
