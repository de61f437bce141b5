// The errors of indices out of range that kernels have reported (index_faults.cuh).
#pragma once

#include "backend/backend.h"

namespace st::cuda {

/// The tensor of indices of an op whose kernels report faults. Throws internal for others.
const Operand& indices_of(Op op, const Call& call);

/// Throws the cpu's error of this op (backend/index_check.h). `value`: the index at `element` of indices_of().
[[noreturn]] void fail_at_index(Op op, const Call& call, int64_t value, int64_t element);

}  // namespace st::cuda
