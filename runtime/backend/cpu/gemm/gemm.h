// The matrix product for kernels of this instruction set.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st::cpu::ST_ISA {

TileSchedule gemm_schedule(const GemmProblem& problem, const TileSchedule& wanted = {});
void gemm(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands, std::span<std::byte> workspace,
          Workers& workers);
SmallProduct gemm_small(const GemmProblem& problem, const TileSchedule& schedule, int threads);
void gemm_pack(const GemmProblem& problem, const TileSchedule& schedule, const void* b, std::byte* to, Workers& workers);

}  // namespace st::cpu::ST_ISA
