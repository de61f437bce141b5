// A product that a library of others makes: slices of C on our threads, each by the library on that thread alone, then our epilogue.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st::cpu::ST_ISA {

/// One product of the batch, as_run(), but for its column sums. `library` multiplies it; K and alpha are not 0. The slices depend on the
/// problem alone, so the bits do not depend on the number of workers. bias_stays: along a row, C being the transpose of the caller's.
void library_product(const GemmProblem& problem, const GemmLibrary& library, const GemmOperands& operands, bool bias_stays,
                     Workers& workers);

/// The caller's problem with its B as pack_for_library() leaves it.
GemmProblem with_packed_b(const GemmProblem& problem);
int64_t packed_bytes_for_library(const GemmProblem& problem);
/// B without gaps, in the direction that it has.
void pack_for_library(const GemmProblem& problem, const void* b, std::byte* to, Workers& workers);

}  // namespace st::cpu::ST_ISA
