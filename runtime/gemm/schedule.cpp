#include "gemm/schedule.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace st {

namespace {

struct Row {
  InstructionSet set;
  int64_t mr, nr, kc, task_panels;
};

// kc is long, since re-reading C for each piece of K is the loss: at 1024 a panel of B (128 KiB) and a task's A (448 KiB) share the L2.
constexpr Row kTable[] = {
    {InstructionSet::portable, 6, 8, 512, 16},
    {InstructionSet::avx2, 6, 16, 768, 16},
    {InstructionSet::avx512, 14, 32, 1024, 8},
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace

void check_problem(const GemmProblem& p, const char* op) {
  check(p.m >= 0 && p.n >= 0 && p.k >= 0 && p.batch >= 0, op, ": sizes must not be negative, got m ", p.m, ", n ", p.n, ", k ", p.k,
        ", batch ", p.batch);
  for (const DType type : {p.a_type, p.b_type, p.c_type}) {
    require(type == DType::f32 || type == DType::bf16 || type == DType::f16, Code::unsupported, op,
            ": the cpu backend multiplies f32, bf16 and f16, not ", type, "; cast first, or run on the reference backend");
  }
}

TileSchedule choose_schedule(const GemmProblem& problem, InstructionSet set, const CacheSizes& caches, TileSchedule wanted) {
  const Row& row = *std::find_if(std::begin(kTable), std::end(kTable), [&](const Row& r) { return r.set == set; });
  TileSchedule s = wanted;
  s.nr = row.nr;
  // Rows are shared out evenly among the tiles (16 is 8 + 8, not 14 + 2), so that no tile is too short to hide the latency of FMA.
  if (s.mr <= 0 || s.mr > row.mr) s.mr = row.mr;
  if (problem.m > 0) s.mr = ceil_div(problem.m, ceil_div(problem.m, s.mr));

  if (s.kc <= 0) s.kc = row.kc;
  if (problem.k > 0) s.kc = ceil_div(problem.k, ceil_div(problem.k, s.kc));

  if (s.mc <= 0) {
    const int64_t fits = caches.l2 / 2 / (row.mr * row.kc * 4);  // half of L2 for A, the rest for B's panel and C
    s.mc = s.mr * std::clamp<int64_t>(fits, 2, row.task_panels);
  }
  s.mc = round_up(s.mc, s.mr);
  s.pack_b = s.pack_b && !(problem.m <= kRowsInPlace && problem.b.column == 1 && problem.b_type == DType::f32);
  if (!s.pack_b) s.nc = 8 * s.nr;  // sums of a task wait in the L1 while B streams past
  if (s.nc <= 0) s.nc = 8 * s.nr;
  s.nc = round_up(s.nc, s.nr);

  const int64_t block = caches.l3 / 2 / (row.kc * 4);  // elements along M or N of a packed block: half of L3 each at most
  if (s.block_m <= 0) s.block_m = std::max(block, s.mc);
  s.block_m = round_up(std::min(s.block_m, std::max<int64_t>(problem.m, 1)), s.mc);
  if (s.block_n <= 0) s.block_n = std::max(block, s.nc);
  s.block_n = round_up(std::min(s.block_n, std::max<int64_t>(problem.n, 1)), s.nc);

  if (sums_apart(problem, s)) s.order = LoopOrder::n_m_k;
  return s;
}

bool sums_apart(const GemmProblem& p, const TileSchedule& s) {
  return p.k > s.kc && (p.beta != 0 || p.c_type != DType::f32 || p.c.column != 1);
}

ScratchLayout scratch_layout(const GemmProblem& p, const TileSchedule& s) {
  const int64_t columns =
      s.pack_b ? std::min(s.block_n, round_up(p.n, s.nr)) : s.nr;  // read in place: only the ragged last panel is packed
  ScratchLayout layout;
  layout.b = round_up(std::min(s.block_m, p.m) * s.kc * 4 + 64, 64);  // packing rounds its last store up to a vector
  layout.sums = layout.b + round_up(columns * s.kc * 4, 64);
  layout.bytes = layout.sums;
  if (sums_apart(p, s)) layout.bytes += round_up(std::min(s.block_m, p.m) * std::min(s.block_n, round_up(p.n, s.nr)) * 4, 64);
  return layout;
}

int64_t scratch_bytes(const GemmProblem& problem, const TileSchedule& schedule) { return scratch_layout(problem, schedule).bytes; }

std::string text_of(const TileSchedule& s) {
  return text("tile ", s.mr, "x", s.nr, ", task ", s.mc, "x", s.nc, ", k ", s.kc, ", block ", s.block_m, "x", s.block_n, ", order ",
              s.order == LoopOrder::n_k_m ? "n k m" : "n m k", s.pack_b ? "" : ", B in place");
}

}  // namespace st
