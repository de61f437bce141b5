// A host's array, read.
#pragma once

#include <scaletrain/view.h>

#include <vector>

#include "base/shape.h"

namespace st::capi {

/// All elements of an f32 view, row-major, whatever its strides. Throws invalid_argument that names `what`: another dtype, a bad shape,
/// elements outside of the view's bytes, a NaN.
std::vector<float> floats_of(const st_view& view, const Shape& shape, const std::string& what);

}  // namespace st::capi
