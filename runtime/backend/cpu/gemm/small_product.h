// A product so small that packing would cost more than it saves: one thread reads A and B in place.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st::cpu::ST_ISA {

/// Whether small_product() computes this problem. The bits are those of the blocked product, since there is only one K block.
inline bool is_small(const GemmProblem& p, const TileSchedule& s, int threads) {
  const int64_t most = threads > 1 ? 64 * 64 * 64 : 128 * 128 * 128;
  const bool floats = p.a_type == DType::f32 && p.b_type == DType::f32 && p.c_type == DType::f32;
  return floats && p.b.column == 1 && p.c.column == 1 && p.k <= s.kc && p.m * p.n * p.k <= most && p.n <= s.block_n;
}

/// C without its epilogue. packed_b, if set, belongs to this product of the batch.
void small_product(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands);

}  // namespace st::cpu::ST_ISA
