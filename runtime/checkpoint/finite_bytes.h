// Whether a checkpoint's numbers are numbers: retention keeps the newest checkpoint whose weights are finite.
#pragma once

#include <cstddef>
#include <span>

#include "base/dtype.h"

namespace st {

/// False where an element is NaN or infinite. `bytes`: whole elements, at any address. Integers always are.
bool are_finite(DType dtype, std::span<const std::byte> bytes);

}  // namespace st
