// The memory layout of a host's array, checked before anything is read through it: dtype, dims and strides.
#pragma once

#include <scaletrain/view.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/dtype.h"
#include "base/shape.h"
#include "parts/context.h"

namespace st::capi {

struct StridedLayout {
  DType dtype = DType::f32;
  Shape shape;
  std::array<int64_t, kMaxDims> strides{};  // in elements
  bool compact = true;                      // contiguous row-major
  int64_t bytes = 0;                        // from the first element to the end of the last
};

/// strides NULL: contiguous row-major. `what` prefixes each message: "st_tensor_wrap: view". Throws invalid_argument, or unsupported for
/// more than 8 dimensions and for negative strides.
StridedLayout layout_of(std::string_view what, st_dtype dtype, int32_t rank, const int64_t* dims, const int64_t* strides);

/// The layout of a view; also checks that its memory is there, is large enough, and is the host's, or of the device of `home` if it is not
/// null.
StridedLayout layout_of(std::string_view what, const st_view& view, const Context* home = nullptr);

/// Throws invalid_argument unless an array at this address of the device of `home` has no gaps and is in its memory.
void check_on_device(std::string_view what, const StridedLayout& layout, const void* data, const Context& home);

}  // namespace st::capi
