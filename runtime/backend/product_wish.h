// The schedule that the tune pass has requested for a product's node.
#pragma once

#include "gemm/schedule.h"
#include "ir/attrs.h"

namespace st {

/// Reads the attributes `tiles` and, if the op has it, `library`. Throws unavailable if this process has not found that library.
TileSchedule product_wish(const Attrs& attrs);

}  // namespace st
