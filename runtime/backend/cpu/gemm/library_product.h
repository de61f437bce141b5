// A product computed by a third-party library: slices of C on our threads, each by the library on one thread, then our epilogue.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st::cpu::ST_ISA {

/// One product of the batch, as_run(), except its column sums. K and alpha must not be 0. The slices depend only on the problem, so the
/// bits do not depend on the number of workers. bias_along_rows: the bias is constant along a row, because C is the transpose of the
/// caller's.
void library_product(const GemmProblem& problem, const GemmLibrary& library, const GemmOperands& operands, bool bias_along_rows,
                     Workers& workers);

/// The caller's problem with B as packed by pack_for_library().
GemmProblem with_packed_b(const GemmProblem& problem);
/// B without gaps, in its own orientation.
void pack_for_library(const GemmProblem& problem, const void* b, std::byte* to, Workers& workers);

}  // namespace st::cpu::ST_ISA
