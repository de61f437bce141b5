// Whether a checkpoint's numbers are finite: retention keeps the newest checkpoint whose weights are.
#pragma once

#include <cstddef>
#include <span>

#include "base/dtype.h"

namespace st {

/// False if an element is NaN or infinite; always true for integers. `bytes`: whole elements, at any address.
bool are_finite(DType dtype, std::span<const std::byte> bytes);

}  // namespace st
