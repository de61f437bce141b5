#include "strided_layout.h"

#include <algorithm>

#include "base/error.h"
#include "base/host_view.h"
#include "views.h"

namespace st::capi {
namespace {

void check_type(std::string_view what, st_dtype dtype, int32_t rank, const int64_t* dims) {
  check(dtype >= ST_F32 && dtype <= ST_BOOL, what, " has dtype ", dtype, ", which is not a dtype; use ST_F32 (1) to ST_BOOL (8)");
  check(rank >= 0, what, " has rank ", rank, "; it must be 0 or more");
  require(rank <= kMaxDims, Code::unsupported, what, " has ", rank, " dimensions; it must have at most ", kMaxDims, ", so merge some");
  check(rank == 0 || dims != nullptr, what, " has rank ", rank, " and no dims (NULL)");
}

/// Counts an empty dimension as one element, so that nothing overflows after a 0.
bool fits_memory(const Shape& shape, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  return std::ranges::all_of(shape, [&](int64_t dim) { return !__builtin_mul_overflow(bytes, std::max<int64_t>(dim, 1), &bytes); });
}

int64_t bytes_spanned(std::string_view what, const StridedLayout& layout) {
  for (int32_t i = 0; i < layout.shape.rank(); ++i) {
    const int64_t stride = layout.strides[static_cast<size_t>(i)];  // unused in a dimension of one element
    require(stride >= 0 || layout.shape[i] == 1, Code::unsupported, what, " has stride ", stride, " in dimension ", i,
            "; negative strides are not supported, so copy it to row-major");
  }
  const int64_t bytes = extent_bytes(layout.dtype, layout.shape, layout.strides);
  check(bytes >= 0, what, " has shape ", layout.shape, " and strides that extend beyond any memory");
  return bytes;
}

}  // namespace

StridedLayout layout_of(std::string_view what, st_dtype dtype, int32_t rank, const int64_t* dims, const int64_t* strides) {
  check_type(what, dtype, rank, dims);
  StridedLayout layout;
  layout.dtype = static_cast<DType>(dtype);
  for (int32_t i = 0; i < rank; ++i) layout.shape.push_back(dims[i]);
  check(std::ranges::all_of(layout.shape, [](int64_t dim) { return dim >= 0; }), what, " has shape ", layout.shape,
        "; dimensions must be 0 or more");
  check(fits_memory(layout.shape, bytes_of(layout.dtype)), what, " has shape ", layout.shape, ", which is too large for any memory");
  layout.strides = row_major(layout.shape);
  if (strides != nullptr) {
    const bool empty = std::ranges::find(layout.shape, 0) != layout.shape.end();
    for (int32_t i = 0; i < rank && !empty; ++i)
      if (layout.shape[i] > 1 && strides[i] != layout.strides[static_cast<size_t>(i)]) layout.compact = false;
    if (!layout.compact) std::copy_n(strides, rank, layout.strides.begin());
  }
  layout.bytes = bytes_spanned(what, layout);
  return layout;
}

StridedLayout layout_of(std::string_view what, const st_view& view, const Context* home) {
  if (!is_of_host(view)) check_device(what, view, home);
  StridedLayout layout = layout_of(what, view.dtype, view.rank, view.dims, view.strides);
  check(view.data != nullptr || layout.bytes == 0, what, " of shape ", layout.shape, " has no data (NULL)");
  check(view.bytes >= layout.bytes, what, " of shape ", layout.shape, " needs ", layout.bytes, " bytes, but it has ", view.bytes);
  if (view.device != 0) check_on_device(what, layout, view.data, *home);
  return layout;
}

void check_on_device(std::string_view what, const StridedLayout& layout, const void* data, const Context& home) {
  check(layout.compact, what, " is in the memory of ", device_name(home), ", where it must be row-major without gaps; copy it there first");
  check_reach(what, data, layout.bytes, home);
}

}  // namespace st::capi
