// What the tune pass has asked of a product's node.
#pragma once

#include "gemm/schedule.h"
#include "ir/attrs.h"

namespace st {

/// The attributes `tiles` and, where the op has it, `library`. Throws unavailable where this process has no such library.
TileSchedule product_wish(const Attrs& attrs);

}  // namespace st
