// A batch of products: each one on all threads or, if they are small, distributed among the threads.
#include "backend/cpu/gemm/gemm.h"

#include <algorithm>
#include <atomic>

#include "backend/cpu/gemm/entry.h"
#include "backend/cpu/gemm/epilogue_rows.h"
#include "backend/cpu/gemm/lanes.h"
#include "backend/cpu/gemm/library_product.h"
#include "backend/cpu/gemm/product.h"
#include "backend/cpu/gemm/product_needs.h"
#include "backend/cpu/gemm/small_product.h"
#include "gemm/rounding.h"
#include "gemm/task_grid.h"

namespace st::cpu::ST_ISA {
namespace {

const std::byte* offset(const void* base, int64_t elements, DType type) {
  if (base == nullptr) return nullptr;  // B, if it is packed
  return static_cast<const std::byte*>(base) + elements * (type == DType::f32 ? 4 : 2);
}

/// The set that computes this product: sets of pairs leave all but bf16 times bf16 to avx512. Null: this one.
const GemmKernels* made_elsewhere([[maybe_unused]] const GemmProblem& p) {
  if constexpr (micro::kPairs)
    if (p.a_type != DType::bf16 || p.b_type != DType::bf16) return st_cpu_gemm_avx512();
  return nullptr;
}

GemmSide entry_of(GemmSide side, int64_t entry, DType type, bool turned) {
  if (side.data != nullptr) side.data = const_cast<std::byte*>(offset(side.data, entry * side.batch, type));
  if (turned) side.at = side.at.transposed();
  return side;
}

/// The schedule with its blocks for this number of threads. One thread packs only one task's rows of A at a time: they and their packed
/// copy stay in L2. Not if something would be packed twice, nor for a transposed A, of which a few rows are a few bytes here and there.
/// Several threads would wait for each other. Not measured for pairs.
TileSchedule as_run(TileSchedule s, const GemmProblem& p, bool packs_a, bool packed_b, int threads) {
  // Blocks of a B in place would only add forks. Those of a packed one are its layout if there are several K blocks, and partial sums have
  // a buffer for one block.
  if (!s.packs_b() && (!packed_b || p.k <= s.kc) && !sums_apart(p, s)) s.block_n = round_up(p.n, s.nr);
  const bool packs_once = p.n <= s.block_n && (s.order == LoopOrder::n_k_m || p.k <= s.block_k);
  if (!micro::kPairs && packs_a && packs_once && p.a.column == 1 && threads == 1) s.block_m = std::min(s.block_m, s.mc);
  return s;
}

[[maybe_unused]] void small_product_by_tasks(const GemmProblem& p, const TileSchedule& s, const GemmOperands& x, Workers& workers) {
  const auto finish = [&](const TaskBlock& block) {
    if (x.epilogue != nullptr && x.epilogue->changes_c())
      apply_epilogue(*x.epilogue, {x.c, p.c, p.c_type, block.row, block.rows, block.column, block.columns});
  };
  if (is_for_one_thread(p)) {  // its time shows each division
    small_product(p, s, x);
    return finish({0, p.m, 0, p.n});
  }
  const TaskGrid grid = small_task_grid(s, p, workers.threads());
  workers.run(grid.count(), [&](int64_t t) {
    const TaskBlock block = grid.at(t);
    small_block(p, s, x, block);
    finish(block);
  });
}

/// The epilogue for one product of the batch.
GemmEpilogue entry_of(const GemmEpilogue& e, int64_t entry, DType type, bool turned) {
  return {e.activation, entry_of(e.pre_activation, entry, type, turned), entry_of(e.derivative_at, entry, type, turned),
          entry_of(e.residual, entry, type, turned), nullptr};
}

}  // namespace

TileSchedule gemm_schedule(const GemmProblem& problem, const TileSchedule& wanted) {
  return product_schedule(micro::kInstructionSet, problem, wanted);
}

void gemm(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands, std::span<std::byte> workspace,
          Workers& workers) {
  if (const GemmKernels* other = made_elsewhere(problem)) return other->run(problem, schedule, operands, workspace, workers);
  if constexpr (!micro::kPairs) {  // libraries multiply fp32
    if (schedule.library != nullptr && operands.packed_b != nullptr) {
      GemmOperands plain = operands;
      plain.b = operands.packed_b, plain.packed_b = nullptr;
      return gemm(with_packed_b(problem), schedule, plain, workspace, workers);
    }
  }
  const GemmProblem p = as_run(problem);
  const bool turned = runs_transposed(problem);
  [[maybe_unused]] const bool by_library = schedule.library != nullptr && p.k > 0 && p.alpha != 0;
  GemmOperands given = operands;
  if (turned) std::swap(given.a, given.b);
  if (p.k == 0) given.a = given.b = workspace.data();  // the caller's may be null; nothing is read through these
  bool small = false;
  if constexpr (!micro::kPairs)
    small = !turned && !by_library && is_small(micro::kWidth, p, schedule, operands.packed_b != nullptr, workers.threads());
  const ScratchLayout layout = small ? ScratchLayout{} : scratch_layout(p, schedule);
  const int64_t packed_step = operands.packed_b == nullptr || problem.b_batch == 0 ? 0 : packed_cells(micro::kKernelTile, problem);
  const auto one = [&](int64_t entry, int64_t lane) {
    const auto scratch = [&](int64_t at) { return workspace.data() + lane * layout.bytes + at; };
    GemmOperands x = given;
    x.a = offset(given.a, entry * p.a_batch, p.a_type);
    x.b = offset(given.b, entry * p.b_batch, p.b_type);
    x.c = const_cast<std::byte*>(offset(given.c, entry * p.c_batch, p.c_type));
    GemmEpilogue epilogue;
    if (given.epilogue != nullptr) {
      epilogue = entry_of(*given.epilogue, entry, p.c_type, turned);
      x.epilogue = &epilogue;
    }
    if constexpr (!micro::kPairs) {
      if (by_library) return library_product(p, *schedule.library, x, turned, workers);
      if (small) {
        if (given.packed_b != nullptr) x.packed_b = given.packed_b + entry * packed_step * static_cast<int64_t>(sizeof(micro::Cell));
        return small_product_by_tasks(p, schedule, x, workers);
      }
    }
    const bool packs_a = given.packed_b == nullptr || !turned;
    Product product{{{p, as_run(schedule, p, packs_a, given.packed_b != nullptr, workers.threads())},
                     x.a,
                     x.b,
                     reinterpret_cast<micro::Cell*>(scratch(layout.a)),
                     reinterpret_cast<micro::Cell*>(scratch(layout.b))},
                    x};
    if (sums_apart(p, schedule)) product.sums = reinterpret_cast<float*>(scratch(layout.sums));
    product.bias_along_rows = turned;
    if (given.packed_b != nullptr) {
      (turned ? product.panels.packed_a : product.panels.packed_b) =
          reinterpret_cast<const micro::Cell*>(given.packed_b) + entry * packed_step;
    }
    product.run(workers);
  };
  if (p.m == 0 || p.n == 0) {
    // nothing to compute
  } else if (!shares_batch(p)) {
    for (int64_t entry = 0; entry < p.batch; ++entry) one(entry, 0);
  } else {
    // Small products: one lane of scratch per thread; each lane takes the next product of the batch. No bit depends on which lane takes
    // which.
    std::atomic<int64_t> next = 0;
    workers.run(std::min<int64_t>(workers.threads(), p.batch), [&](int64_t lane) {
      for (int64_t entry = next++; entry < p.batch; entry = next++) one(entry, lane);
    });
  }
  if (given.epilogue != nullptr && given.epilogue->column_sums != nullptr)
    sum_columns(problem, given.c, given.epilogue->column_sums, workers);
}

SmallProduct gemm_small(const GemmProblem& problem, const TileSchedule& schedule, int threads) {
  if (const GemmKernels* other = made_elsewhere(problem)) return other->small(problem, schedule, threads);
  if constexpr (!micro::kPairs) {
    const bool whole = schedule.library == nullptr && problem.batch == 1 && problem.m > 0 && problem.n > 0 && problem.k > 0;
    if (whole && !runs_transposed(problem) && is_small(micro::kWidth, problem, schedule, false, threads)) {
      if (small_task_grid(schedule, problem, threads).count() == 1) return small_product;
    }
  }
  return nullptr;
}

void gemm_pack(const GemmProblem& problem, const TileSchedule& schedule, const void* b, std::byte* to, Workers& workers) {
  if (const GemmKernels* other = made_elsewhere(problem)) return other->pack(problem, schedule, b, to, workers);
  if constexpr (!micro::kPairs)
    if (schedule.library != nullptr) return pack_for_library(problem, b, to, workers);
  const GemmProblem p = as_run(problem);
  const int64_t matrices = packing_of(problem, schedule).matrices, step = packed_cells(micro::kKernelTile, problem);
  for (int64_t i = 0; i < matrices; ++i) {
    Panels panels{{p, schedule}};
    auto* cells = reinterpret_cast<micro::Cell*>(to) + i * step;
    const std::byte* from = offset(b, i * problem.b_batch, problem.b_type);
    if (runs_transposed(problem)) {
      panels.a = from;
      panels.pack_all_a(cells, workers);
    } else {
      panels.b = from;
      panels.pack_all_b(cells, workers);
    }
  }
}

}  // namespace st::cpu::ST_ISA

#define ST_ENTRY_OF(isa) ST_ENTRY_OF_(isa)
#define ST_ENTRY_OF_(isa) st_cpu_gemm_##isa

extern "C" const st::GemmKernels* ST_ENTRY_OF(ST_ISA)() {
  namespace isa = st::cpu::ST_ISA;
  static const st::GemmKernels kernels {
    isa::gemm_schedule, st::cpu::product_workspace, isa::gemm,
        [](const st::GemmProblem& p, const st::TileSchedule& s) { return st::cpu::packed_bytes(isa::micro::kInstructionSet, p, s); },
        isa::gemm_pack, isa::gemm_small,
#if !defined(ST_BF16_PAIRS)
        isa::apply_epilogue, isa::sum_columns
#endif
  };
  return &kernels;
}
