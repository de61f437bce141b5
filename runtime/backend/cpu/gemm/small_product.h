// A product so small that packing would cost more than it saves: A and B are read in place.
#pragma once

#include "backend/cpu/gemm/lanes.h"
#include "gemm/gemm_kernels.h"
#include "gemm/task_grid.h"

namespace st::cpu::ST_ISA {

/// A block of C, without its epilogue. packed_b, if set, belongs to this product of the batch.
void small_block(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands, const TaskBlock& block);
/// All of C.
void small_product(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands);

}  // namespace st::cpu::ST_ISA
