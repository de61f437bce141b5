// A product so small that packing would cost more than it saves: A and B are read where they lie, by one thread.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st::cpu::ST_ISA {

/// Whether small_product() computes this; the same bits as in blocks, since the sum over K is one piece.
inline bool is_small(const GemmProblem& p, const TileSchedule& s, int threads) {
  const int64_t most = threads > 1 ? 64 * 64 * 64 : 128 * 128 * 128;
  const bool floats = p.a_type == DType::f32 && p.b_type == DType::f32 && p.c_type == DType::f32;
  return floats && p.b.column == 1 && p.c.column == 1 && p.k <= s.kc && p.m * p.n * p.k <= most && p.n <= s.block_n;
}

/// C without its epilogue. Of packed_b, it is this entry's of the batch.
void small_product(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands);

}  // namespace st::cpu::ST_ISA
