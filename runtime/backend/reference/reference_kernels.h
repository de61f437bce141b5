// The reference backend's kernels: one per row of ops.def, in the file named after the op. They are slow and obvious: they read every
// element as double, follow the op's formula in ops.def (PyTorch's semantics), and round once at the output. They run on the calling thread
// and also work on f64 storage, which finite differences need.
#pragma once

#include "backend/kernel_side.h"

namespace st::reference {

#define ST_OP(name, ...) extern const Kernel kernel_##name;
#include "ir/ops.def"
#undef ST_OP

}  // namespace st::reference
