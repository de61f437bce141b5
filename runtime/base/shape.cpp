#include "base/shape.h"

#include <algorithm>

#include "base/error.h"

namespace st {

Shape::Shape(std::span<const int64_t> dims) {
  check(dims.size() <= kMaxDims, "shape: at most ", kMaxDims, " dimensions are supported, got ", dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  rank_ = static_cast<int32_t>(dims.size());
}

bool Shape::operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }

void Shape::push_back(int64_t dim) {
  check(rank_ < kMaxDims, "shape: at most ", kMaxDims, " dimensions are supported");
  dims_[static_cast<size_t>(rank_++)] = dim;
}

bool Shape::is_symbolic() const {
  return std::ranges::any_of(dims(), [](int64_t dim) { return dim < 0; });
}

Shape Shape::bind(int64_t batch) const {
  Shape bound = *this;
  for (int32_t i = 0; i < rank_; ++i)
    if (bound[i] < 0) check(!__builtin_mul_overflow(-bound[i], batch, &bound[i]), "shape: ", *this, " with batch ", batch, " overflows");
  return bound;
}

int64_t Shape::elements() const { return elements(0, rank_); }

int64_t Shape::elements(int32_t from, int32_t to) const {
  int64_t product = 1;
  for (int32_t i = from; i < to; ++i)
    check(!__builtin_mul_overflow(product, (*this)[i], &product), "shape: ", *this, " has more elements than fit 64 bits");
  return product;
}

Shape broadcast(std::string_view op, const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  const int32_t shift = longer.rank() - shorter.rank();
  for (int32_t i = 0; i < shorter.rank(); ++i) {
    int64_t& dim = out[i + shift];
    const int64_t other = shorter[i];
    check(dim == other || dim == 1 || other == 1, op, ": shapes ", a, " and ", b, " do not broadcast (dimension ", i + shift, ": ", dim,
          " and ", other, ")");
    if (dim == 1) dim = other;
  }
  return out;
}

int32_t normalize_axis(std::string_view op, int64_t axis, int32_t rank) {
  check(axis >= -rank && axis < rank, op, ": axis ", axis, " is out of range for ", rank, " dimensions");
  return static_cast<int32_t>(axis < 0 ? axis + rank : axis);
}

}  // namespace st
