// A finished piece of C through its epilogue, row by row. Sets with bf16 products of their own take avx512's, which has all it needs.
#pragma once

#include "backend/cpu/gemm/entry.h"
#include "gemm/gemm_kernels.h"

namespace st::cpu::ST_ISA {

#if defined(ST_BF16_PAIRS)

inline void apply_epilogue(const GemmEpilogue& epilogue, const EpiloguePiece& piece) {
  st_cpu_gemm_avx512()->apply_epilogue(epilogue, piece);
}
inline void sum_columns(const GemmProblem& problem, const void* c, void* sums, Workers& workers) {
  st_cpu_gemm_avx512()->sum_columns(problem, c, sums, workers);
}

#else

void apply_epilogue(const GemmEpilogue& epilogue, const EpiloguePiece& piece);

/// Of the problem's own orientation, C finished.
void sum_columns(const GemmProblem& problem, const void* c, void* sums, Workers& workers);

#endif

}  // namespace st::cpu::ST_ISA
