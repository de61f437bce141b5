#include "backend/cpu/gemm/product_needs.h"

#include <algorithm>

namespace st::cpu {
namespace {

constexpr int64_t kLineCells = 16;

InstructionSet set_of(InstructionSet set, const GemmProblem& p) {
  const bool is_bf16 = p.a_type == DType::bf16 && p.b_type == DType::bf16;
  return kernel_tile(set).pairs() && !is_bf16 ? InstructionSet::avx512 : set;
}

}  // namespace

TileSchedule product_schedule(InstructionSet set, const GemmProblem& problem, const TileSchedule& wanted) {
  return choose_schedule(as_run(problem), set_of(set, problem), {}, runs_transposed(problem) ? transposed(wanted) : wanted);
}

int64_t product_workspace(const GemmProblem& problem, const TileSchedule& schedule, int threads) {
  const GemmProblem p = as_run(problem);
  return scratch_bytes(p, schedule) * (shares_batch(p) ? std::min<int64_t>(threads, p.batch) : 1);
}

int64_t packed_cells(const KernelTile& tile, const GemmProblem& problem) {
  const int64_t across = runs_transposed(problem) ? tile.padded_rows(problem.n) : tile.padded_columns(problem.n);
  return (across * tile.cells_of(problem.k) + 2 * kLineCells - 1) / kLineCells * kLineCells;
}

int64_t packed_bytes(InstructionSet set, const GemmProblem& problem, const TileSchedule& schedule) {
  const KernelTile tile = kernel_tile(set_of(set, problem));
  if (!tile.pairs() && schedule.library != nullptr) return elements_of_b(problem) * 4;  // without gaps
  return packed_cells(tile, problem) * packing_of(problem, schedule).matrices * 4;
}

}  // namespace st::cpu
