// A named array of the host's, described and borrowed.
#pragma once

#include <string_view>

#include "base/dtype.h"
#include "base/shape.h"

namespace st {

/// Row-major without gaps; the first dimension counts rows.
struct NamedView {
  std::string_view name;
  DType dtype = DType::f32;
  Shape shape;
  const void* data = nullptr;
};

}  // namespace st
