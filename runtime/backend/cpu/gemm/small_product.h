// A product so small that packing would cost more than it saves: A and B are read in place.
#pragma once

#include "backend/cpu/gemm/lanes.h"
#include "gemm/gemm_kernels.h"
#include "gemm/task_grid.h"

namespace st::cpu::ST_ISA {

/// Whether small_product() computes this problem, whose B is packed or not. The bits are those of the blocked product, since there is only
/// one K block. With AVX-512, up to a few hundred rows that are short it is as fast as packed panels (tests/bench/README.md), and for
/// several threads packing would be one more fork and join, and lines that one core packs and another reads. Few rows read a packed B as it
/// lies, and leave a large one that is not packed, of whose rows a panel is a few lines, to few_rows.cpp.
inline bool is_small(const GemmProblem& p, const TileSchedule& s, bool packed, int threads) {
  const bool floats = p.a_type == DType::f32 && p.b_type == DType::f32 && p.c_type == DType::f32;
  if (!floats || p.b.column != 1 || p.c.column != 1 || p.k > s.kc) return false;
  if (packed && p.m <= 8 && micro::kWidth > 4) return true;
  if (p.n > s.block_n || (p.m < 4 && p.n * p.k > 1 << 16)) return false;
  constexpr int64_t kSide = micro::kWidth == 4 ? 64 : 128;
  if (p.m * p.n * p.k <= kSide * kSide * kSide) return true;
  const bool few_rows_or_columns = p.m <= 512 || p.n <= 64;
  return micro::kWidth == 16 && few_rows_or_columns && p.n <= (threads > 1 ? 512 : 384) && p.k <= 512;
}

/// A block of C, without its epilogue. packed_b, if set, belongs to this product of the batch.
void small_block(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands, const TaskBlock& block);
/// All of C.
void small_product(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands);

}  // namespace st::cpu::ST_ISA
