// The reference backend's kernels: one for each row of ops.def, in the file of the op's name. They are slow and obvious: they read each
// element as double whatever its storage, follow the op's formula in ops.def (PyTorch's semantics), and round once at the output. They run
// on the calling thread and work on f64 storage too, which finite differences need.
#pragma once

#include "backend/backend.h"

namespace st::reference {

#define ST_OP(name, ...) extern const Kernel kernel_##name;
#include "ir/ops.def"
#undef ST_OP

}  // namespace st::reference
