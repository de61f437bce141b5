// Applies the epilogue to a finished tile of C, row by row. Sets with their own bf16 products use avx512's.
#pragma once

#include "backend/cpu/gemm/entry.h"
#include "gemm/gemm_kernels.h"

namespace st::cpu::ST_ISA {

#if defined(ST_BF16_PAIRS)

inline void apply_epilogue(const GemmEpilogue& epilogue, const EpilogueTile& piece) {
  st_cpu_gemm_avx512()->apply_epilogue(epilogue, piece);
}
inline void sum_columns(const GemmProblem& problem, const void* c, void* sums, Workers& workers) {
  st_cpu_gemm_avx512()->sum_columns(problem, c, sums, workers);
}

#else

void apply_epilogue(const GemmEpilogue& epilogue, const EpilogueTile& piece);

/// For the problem in its own orientation, after C is finished.
void sum_columns(const GemmProblem& problem, const void* c, void* sums, Workers& workers);

#endif

}  // namespace st::cpu::ST_ISA
