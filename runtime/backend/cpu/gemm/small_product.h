// A product so small that packing would cost more than it saves: A and B are read where they lie, by one thread.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st::cpu::ST_ISA {

/// Whether small_product() computes this; the same bits as in blocks, since the sum over K is one piece.
bool is_small(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands, int threads);

/// C without its epilogue.
void small_product(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands);

}  // namespace st::cpu::ST_ISA
