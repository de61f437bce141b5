#include "host_values.h"

#include <array>
#include <cmath>
#include <cstring>

#include "base/dtype.h"
#include "base/error.h"

namespace st::capi {
namespace {

using Strides = std::array<int64_t, kMaxDims>;

Strides strides_of(const st_view& view, const Shape& shape) {
  Strides strides{};
  int64_t step = 1;
  for (int32_t i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = view.strides != nullptr ? view.strides[i] : step;
    static_cast<void>(__builtin_mul_overflow(step, shape[i], &step));  // beside a dimension of 0 the others may be anything
  }
  return strides;
}

/// One past the last element that is read, in elements; a double says "too many" where int64 would wrap around.
double end_of(const Shape& shape, const Strides& strides) {
  double last = 0;
  for (int32_t i = 0; i < shape.rank(); ++i)
    last += static_cast<double>(shape[i] - 1) * static_cast<double>(strides[static_cast<size_t>(i)]);
  return last + 1;
}

void check_view(const st_view& view, const Shape& shape, const Strides& strides, const std::string& what) {
  check(view.dtype == ST_F32, what, ": the values' dtype is ", view.dtype, "; 1 (ST_F32) is needed");
  for (const int64_t dim : shape) check(dim >= 0, what, ": the values' shape ", shape, " holds a negative dimension");
  if (shape.elements() == 0) return;
  for (int32_t i = 0; i < shape.rank(); ++i)
    check(strides[static_cast<size_t>(i)] >= 0, what, ": stride ", i, " is ", strides[static_cast<size_t>(i)], ", which reads before data");
  const double bytes = 4 * end_of(shape, strides);
  check(view.data != nullptr, what, ": data is NULL");
  check(static_cast<double>(view.bytes) >= bytes, what, ": shape ", shape, " with these strides needs ", bytes, " bytes, the view has ",
        view.bytes);
}

}  // namespace

std::vector<float> floats_of(const st_view& view, const Shape& shape, const std::string& what) {
  const Strides strides = strides_of(view, shape);
  check_view(view, shape, strides, what);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  Strides at{};  // the index of the element being read
  for (float& value : values) {
    int64_t offset = 0;
    for (int32_t i = 0; i < shape.rank(); ++i) offset += at[static_cast<size_t>(i)] * strides[static_cast<size_t>(i)];
    std::memcpy(&value, static_cast<const char*>(view.data) + 4 * offset, sizeof value);  // the host's array may lie anywhere
    check(!std::isnan(value), what, ": element ", &value - values.data(), " is NaN");
    for (int32_t i = shape.rank() - 1; i >= 0 && ++at[static_cast<size_t>(i)] == shape[i]; --i) at[static_cast<size_t>(i)] = 0;
  }
  return values;
}

}  // namespace st::capi
