// The product for kernels of this instruction set.
#pragma once

#include "backend/cpu/gemm/entry.h"

namespace st::cpu::ST_ISA {

TileSchedule gemm_schedule(const GemmProblem& problem);
int64_t gemm_workspace(const GemmProblem& problem, const TileSchedule& schedule, int threads);
void gemm(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands, std::span<std::byte> workspace,
          Workers& workers);

}  // namespace st::cpu::ST_ISA
