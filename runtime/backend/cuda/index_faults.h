// The errors of indices out of range that kernels have reported (index_faults.cuh).
#pragma once

#include <initializer_list>

#include "backend/kernel_call.h"

namespace st::cuda {

/// The tensor of indices of an op whose kernels report faults. Throws internal for others.
const Operand& indices_of(Op op, const Call& call);

/// Throws the cpu's error of this op (backend/index_check.h) for the first of these values that is out of range, at `element` of
/// indices_of(): that in memory, and that which was reported.
[[noreturn]] void fail_at_index(Op op, const Call& call, std::initializer_list<int64_t> values, int64_t element);

}  // namespace st::cuda
