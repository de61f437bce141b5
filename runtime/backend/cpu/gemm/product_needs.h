// Memory needs of products, by instruction set: pure functions, compiled once, for plans of any machine and for the kernels.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st::cpu {

/// The schedule of as_run(problem); also on sets of pairs, which leave all but bf16 times bf16 to avx512.
TileSchedule product_schedule(InstructionSet set, const GemmProblem& problem, const TileSchedule& wanted = {});
/// Bytes for `threads` threads.
int64_t product_workspace(const GemmProblem& problem, const TileSchedule& schedule, int threads);
/// Bytes of all matrices of B.
int64_t packed_bytes(InstructionSet set, const GemmProblem& problem, const TileSchedule& schedule);
/// Cells of one packed matrix of B, with room for reads past its end.
int64_t packed_cells(const KernelTile& tile, const GemmProblem& problem);

/// Whether the products of a batch are so small that threads take whole ones, each with its own workspace.
inline bool shares_batch(const GemmProblem& p) { return p.batch > 1 && p.m * p.n * p.k <= 1 << 18; }

/// Whether a set of vectors of `width` floats reads A and B of this product in place, B packed or not. The bits are those of the blocked
/// product, since there is only one K block. With AVX-512, up to a few hundred rows that are short it is as fast as packed panels
/// (tests/bench/README.md), and for several threads packing would be one more fork and join, and lines that one core packs and another
/// reads. Few rows read a packed B as it lies, and leave a large one that is not packed, of whose rows a panel is a few lines, to
/// few_rows.cpp.
inline bool is_small(int64_t width, const GemmProblem& p, const TileSchedule& s, bool packed, int threads) {
  const bool floats = p.a_type == DType::f32 && p.b_type == DType::f32 && p.c_type == DType::f32;
  if (!floats || p.b.column != 1 || p.c.column != 1 || p.k > s.kc) return false;
  if (packed && p.m <= 8 && width > 4) return true;
  if (p.n > s.block_n || (p.m < 4 && p.n * p.k > 1 << 16)) return false;
  const int64_t side = width == 4 ? 64 : 128;
  if (p.m * p.n * p.k <= side * side * side) return true;
  const bool few_rows_or_columns = p.m <= 512 || p.n <= 64;
  return width == 16 && few_rows_or_columns && p.n <= (threads > 1 ? 512 : 384) && p.k <= 512;
}

}  // namespace st::cpu
