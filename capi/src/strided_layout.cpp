#include "strided_layout.h"

#include <algorithm>

#include "base/error.h"

namespace st::capi {
namespace {

void check_type(std::string_view what, st_dtype dtype, int32_t rank, const int64_t* dims) {
  check(dtype >= ST_F32 && dtype <= ST_BOOL, what, " has dtype ", dtype, ", which is none; use ST_F32 (1) to ST_BOOL (8)");
  check(rank >= 0, what, " has rank ", rank);
  require(rank <= kMaxDims, Code::unsupported, what, " has ", rank, " dimensions, at most ", kMaxDims, " are taken; fold some into one");
  check(rank == 0 || dims != nullptr, what, " has rank ", rank, " and no dims (NULL)");
}

/// Strides of the same shape without gaps. An empty array counts as one element a dimension, so that nothing overflows behind a 0.
std::array<int64_t, kMaxDims> row_major(std::string_view what, const Shape& shape, int64_t element_bytes) {
  std::array<int64_t, kMaxDims> strides{};
  int64_t elements = 1, bytes = 0;
  for (int32_t i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = elements;
    check(!__builtin_mul_overflow(elements, std::max<int64_t>(shape[i], 1), &elements), what, " has shape ", shape,
          ", which no memory holds");
  }
  check(!__builtin_mul_overflow(elements, element_bytes, &bytes), what, " has shape ", shape, ", which no memory holds");
  return strides;
}

int64_t bytes_spanned(std::string_view what, const StridedLayout& layout) {
  int64_t last = 0, bytes = 0;
  bool fits = true;
  for (int32_t i = 0; i < layout.shape.rank(); ++i) {
    const int64_t dim = layout.shape[i], stride = layout.strides[static_cast<size_t>(i)];
    if (dim == 0) return 0;
    if (dim == 1) continue;  // its stride is never used
    require(stride >= 0, Code::unsupported, what, " has stride ", stride, " in dimension ", i,
            ", and arrays that run backwards are not taken; copy it to row-major");
    int64_t reach = 0;
    fits = fits && !__builtin_mul_overflow(dim - 1, stride, &reach) && !__builtin_add_overflow(last, reach, &last);
  }
  fits = fits && !__builtin_add_overflow(last, 1, &last) && !__builtin_mul_overflow(last, bytes_of(layout.dtype), &bytes);
  check(fits, what, " has shape ", layout.shape, " and strides that reach further than any memory");
  return bytes;
}

}  // namespace

StridedLayout layout_of(std::string_view what, st_dtype dtype, int32_t rank, const int64_t* dims, const int64_t* strides) {
  check_type(what, dtype, rank, dims);
  StridedLayout layout;
  layout.dtype = static_cast<DType>(dtype);
  for (int32_t i = 0; i < rank; ++i) layout.shape.push_back(dims[i]);
  check(std::ranges::all_of(layout.shape, [](int64_t dim) { return dim >= 0; }), what, " has shape ", layout.shape,
        "; dimensions are 0 or more");
  layout.strides = row_major(what, layout.shape, bytes_of(layout.dtype));
  if (strides != nullptr) {
    const bool empty = std::ranges::find(layout.shape, 0) != layout.shape.end();
    for (int32_t i = 0; i < rank && !empty; ++i)
      if (layout.shape[i] > 1 && strides[i] != layout.strides[static_cast<size_t>(i)]) layout.compact = false;
    if (!layout.compact) std::copy_n(strides, rank, layout.strides.begin());
  }
  layout.bytes = bytes_spanned(what, layout);
  return layout;
}

StridedLayout layout_of(std::string_view what, const st_view& view) {
  StridedLayout layout = layout_of(what, view.dtype, view.rank, view.dims, view.strides);
  check(view.data != nullptr || layout.bytes == 0, what, " of shape ", layout.shape, " has no data (NULL)");
  check(view.bytes >= layout.bytes, what, " of shape ", layout.shape, " needs ", layout.bytes, " bytes, it has ", view.bytes);
  return layout;
}

}  // namespace st::capi
