#include "gemm/schedule.h"

#include <algorithm>

#include "base/error.h"
#include "gemm/gemm_kernels.h"
#include "gemm/gemm_library.h"

namespace st {

namespace {

struct Row {
  int64_t kc, task_panels;
  int64_t block_k = 0;  // 0: one K block
};

// kc is long, because C is read again for each K block: at 1024 a panel of B (128 KiB) and a task's A (448 KiB) share L2.
// Tile kernels need a panel of A and one of B in L1, 16 KiB each. Their sums stay in L2 meanwhile, so all of K is packed in advance.
constexpr Row kTable[] = {{512, 16}, {768, 16}, {1024, 8}, {2048, 8}, {256, 8, 8192}};  // by InstructionSet

/// Bytes of one element in a packed panel.
int64_t packed_bytes_of(int64_t kr) { return kr == 1 ? 4 : 2; }

/// Few rows, and B either has contiguous fp32 rows, or its lines are interleaved a few at a time (kr > 1).
bool may_stay_in_place(const GemmProblem& p, const TileSchedule& s) {
  return p.m <= rows_in_place(s.kr) && (s.kr > 1 || (p.b.column == 1 && p.b_type == DType::f32));
}

}  // namespace

TileSchedule choose_schedule(const GemmProblem& problem, InstructionSet set, const CacheSizes& caches, TileSchedule wanted) {
  const Row& row = kTable[static_cast<size_t>(set)];
  const KernelTile tile = kernel_tile(set);
  TileSchedule s = wanted;
  s.nr = tile.columns;
  s.kr = tile.together;
  // Rows are divided evenly among the tiles (16 is 8 + 8, not 14 + 2), so that no tile is too short to hide the FMA latency.
  if (s.mr <= 0 || s.mr > tile.rows) s.mr = tile.rows;
  if (problem.m > 0) s.mr = ceil_div(problem.m, ceil_div(problem.m, s.mr));
  s.mr = tile.padded_rows(s.mr);

  if (s.kc <= 0) s.kc = row.kc;
  if (problem.k > 0) s.kc = ceil_div(problem.k, ceil_div(problem.k, s.kc));
  s.kc = round_up(s.kc, s.kr);
  s.block_k = round_up(std::clamp(row.block_k, s.kc, std::max(problem.k, s.kc)), s.kc);

  require(s.b != Packing::in_place || may_stay_in_place(problem, s), Code::unsupported, "gemm: B can be read in place for at most ",
          rows_in_place(s.kr), " rows, and by f32 kernels only if it is f32 with unit columns; got ", problem.m, " rows, ", problem.b_type,
          ", columns ", problem.b.column, " apart; use packing");
  // From two tiles of rows on, the schedule in which each task packs its own block of B is faster.
  const bool few = may_stay_in_place(problem, s) && (!is_of_tiles(s) || problem.m <= tile.rows);
  if (s.b == Packing::choose) s.b = few ? Packing::in_place : Packing::packed;
  if (s.mc <= 0 && !s.packs_b()) s.mc = std::max<int64_t>(problem.m, 1);  // all rows: B is read once
  if (s.mc <= 0) {
    const int64_t fits = caches.l2 / 2 / (tile.rows * row.kc * packed_bytes_of(s.kr));  // half of L2 for A, the rest for B's panel and C
    s.mc = s.mr * std::clamp<int64_t>(fits, 2, row.task_panels);
  }
  s.mc = round_up(s.mc, s.mr);
  // Few rows read far along each row of B, as long as their sums fit L1, or L2 from 41 rows on.
  if (!s.packs_b()) s.nc = (problem.m <= 4 ? 32 : problem.m <= 16 ? 16 : problem.m <= 64 ? 8 : 4) * s.nr;
  if (s.nc <= 0) s.nc = 8 * s.nr;
  s.nc = round_up(s.nc, s.nr);

  // Elements along M or N of a packed block: at most half of L3 each.
  const int64_t block = caches.l3 / 2 / (std::max(row.kc, s.block_k) * packed_bytes_of(s.kr));
  if (s.block_m <= 0) s.block_m = std::max(block, s.mc);
  s.block_m = round_up(std::min(s.block_m, std::max<int64_t>(problem.m, 1)), s.mc);
  // Blocks of B in place have the default cuts of packed ones: one packed B serves few rows and many.
  const int64_t columns = s.packs_b() ? s.nc : kWidthsInPlace * s.nr;
  if (s.block_n <= 0) s.block_n = std::max(block, columns);
  s.block_n = round_up(std::min(s.block_n, std::max<int64_t>(problem.n, 1)), columns);

  if (!s.packs_b() && is_of_tiles(s)) s.block_k = std::max(s.kc, round_up(problem.k, s.kc));  // a task completes its sums
  if (sums_apart(problem, s)) s.order = LoopOrder::n_m_k;
  return s;
}

bool is_of_tiles(const TileSchedule& s) { return s.kr == 32; }

TileSchedule transposed(const TileSchedule& s) {
  TileSchedule t = s;
  t.mr = s.nr, t.nr = s.mr;
  t.mc = s.nc, t.nc = s.mc;
  t.block_m = s.block_n, t.block_n = s.block_m;
  return t;
}

int64_t sum_rooms(const GemmProblem& p, const TileSchedule& s) {
  constexpr int64_t kMostThreads = 64;  // with more threads, some wait a little
  const int64_t tasks = ceil_div(std::min(s.block_m, p.m), s.mc) * ceil_div(std::min(s.block_n, p.n), s.nc);
  return p.k > s.block_k ? tasks : std::min(tasks, kMostThreads);
}

bool packs_by_task(const GemmProblem& p, const TileSchedule& s) { return is_of_tiles(s) && s.packs_b() && p.m <= s.mc; }

bool sums_apart(const GemmProblem& p, const TileSchedule& s) {
  if (is_of_tiles(s) && !s.packs_b()) return true;
  return p.k > s.kc && (is_of_tiles(s) || p.beta != 0 || p.c_type != DType::f32 || p.c.column != 1);
}

namespace {

int64_t packed_bytes_of_b(const GemmProblem& p, const TileSchedule& s) {
  if (packs_by_task(p, s)) return sum_rooms(p, s) * std::min(s.nc, round_up(p.n, s.nr)) * s.kc * packed_bytes_of(s.kr);
  const int64_t columns = s.packs_b() ? std::min(s.block_n, round_up(p.n, s.nr)) : s.kr > 1 ? 0 : s.nr;  // in place: the partial last panel
  return columns * s.block_k * packed_bytes_of(s.kr);
}

}  // namespace

ScratchLayout scratch_layout(const GemmProblem& p, const TileSchedule& s) {
  ScratchLayout layout;
  const int64_t depth_bytes = s.block_k * packed_bytes_of(s.kr);
  layout.b = round_up(std::min(s.block_m, round_up(p.m, s.mr)) * depth_bytes + 64, 64);  // packing's last store writes a whole vector
  layout.sums = layout.b + round_up(packed_bytes_of_b(p, s), 64);
  layout.bytes = layout.sums;
  if (!sums_apart(p, s)) return layout;
  layout.bytes += is_of_tiles(s) ? round_up(sum_rooms(p, s) * s.mc * s.nc * 4, 64)
                                 : round_up(std::min(s.block_m, p.m) * std::min(s.block_n, round_up(p.n, s.nr)) * 4, 64);
  return layout;
}

int64_t scratch_bytes(const GemmProblem& problem, const TileSchedule& schedule) { return scratch_layout(problem, schedule).bytes; }

BPacking packing_of(const GemmProblem& p, const TileSchedule& s) {
  const bool turned = runs_transposed(p);  // then the kernel's A is B
  const int64_t matrices = p.b_batch == 0 ? 1 : p.batch;
  if (s.library != nullptr) return {.n = p.n, .k = p.k, .matrices = matrices, .transposed = p.b.column != 1, .library = s.library};
  return {p.n, p.k, matrices, turned ? s.mr : s.nr, s.kc, turned ? s.block_m : s.block_n, s.kr, turned};
}

std::string text_of(const TileSchedule& s) {
  if (s.library != nullptr) return text("by ", s.library->identity());
  return text("tile ", s.mr, "x", s.nr, ", task ", s.mc, "x", s.nc, ", k ", s.kc, ", block ", s.block_m, "x", s.block_n, ", order ",
              s.order == LoopOrder::n_k_m ? "n k m" : "n m k", s.packs_b() ? "" : ", B in place");
}

}  // namespace st
