// Shapes: up to 8 dimensions, row-major. A negative dimension -n means "n times the batch", so that one graph serves every batch size:
// [batch, 64] is {-1, 64}, and flattening it gives {-64}. bind() puts the number in.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/text.h"

namespace st {

constexpr int64_t kBatch = -1;  // ST_BATCH
constexpr int32_t kMaxDims = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);

  int32_t rank() const { return rank_; }
  int64_t operator[](int32_t axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t& operator[](int32_t axis) { return dims_[static_cast<size_t>(axis)]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  bool operator==(const Shape& other) const;

  void push_back(int64_t dim);
  int64_t last() const { return dims_[static_cast<size_t>(rank_ - 1)]; }

  bool is_symbolic() const;  // some dimension depends on the batch
  Shape bind(int64_t batch) const;

  /// Product of the dimensions; throws on overflow of int64. For a symbolic shape: the coefficient with its sign (negative: one batch
  /// factor).
  int64_t elements() const;
  /// Product of dimensions [from, to).
  int64_t elements(int32_t from, int32_t to) const;

 private:
  std::array<int64_t, kMaxDims> dims_{};
  int32_t rank_ = 0;
};

inline void append_text(std::string& out, const Shape& shape) { append_text(out, shape.dims()); }

/// NumPy's rule: align at the right, stretch 1. Throws invalid_argument with `op` and both shapes.
Shape broadcast(std::string_view op, const Shape& a, const Shape& b);

/// -1 counts from the end. Throws invalid_argument when out of range.
int32_t normalize_axis(std::string_view op, int64_t axis, int32_t rank);

}  // namespace st
