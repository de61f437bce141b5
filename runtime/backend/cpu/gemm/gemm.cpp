// C = alpha * op(A) op(B) + beta * C by packed panels, for one problem or a batch.
//
// The block loops (in the schedule's order) cut N, K and M; for each step the pieces of A and B that changed are packed by all threads,
// then all threads take tasks of mc x nc. A task goes over its panels of B, for each over its panels of A: the panel of B and the task's A
// stay in L2. Pieces of K are added in order, none is shared between threads, so neither threads nor blocks change a bit; kc does.
#include "backend/cpu/gemm/gemm.h"

#include <algorithm>
#include <atomic>

#include "backend/cpu/convert.h"
#include "backend/cpu/gemm/micro.h"
#include "backend/cpu/gemm/pack.h"

namespace st::cpu::ST_ISA {

using namespace micro;

namespace {

constexpr int64_t kPanelsPerPackTask = 4, kRowsPerVisit = 8;
constexpr int64_t kSmallProduct = 1 << 18;  // multiply-adds below which threads share out the batch instead of one product

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

const std::byte* offset(const void* base, int64_t elements, DType type) {
  return static_cast<const std::byte*>(base) + elements * (type == DType::f32 ? 4 : 2);
}

template <class Body>
void with_element(DType type, Body&& body) {
  switch (type) {
    case DType::bf16:
      return body(bf16{});
    case DType::f16:
      return body(f16{});
    default:
      return body(float{});
  }
}

/// Packs panels first .. last - 1 of `extent` rows or columns: whole ones and, if it is among them, the ragged one behind them.
template <class T>
void pack_panels(const PanelSource<T>& from, int64_t first, int64_t last, int64_t extent, int64_t width, int64_t ragged_width,
                 int64_t depth, float* to) {
  const int64_t whole = std::min(last, extent / width);
  const auto source = [&](int64_t panel) { return from.at(panel * width, 0); };
  if (from.across_stride == 1 && first < whole) {
    pack_side_by_side(source(first), whole - first, width, depth, width * depth, to + first * width * depth);
    first = whole;
  }
  for (; first < whole; ++first) pack_panel(source(first), width, width, depth, to + first * width * depth);
  if (first < last) pack_panel(source(first), extent - first * width, ragged_width, depth, to + first * width * depth);
}

/// A tile of C and the `depth` steps of piece k0 of K to be added to it.
struct Tile {
  int64_t row, rows, column, columns, k0, depth;
  const float *a = nullptr, *b = nullptr;
  int64_t b_stride = 0;
  float* sum = nullptr;  // where partial sums over the pieces of K wait, if not in C
  int64_t sum_stride = 0;
  const float* resume = nullptr;  // this piece's sums so far
  int64_t resume_stride = 0;
  const float* ahead = nullptr;  // read by a later tile
  int64_t ahead_step = 0;
};

/// One product: operands of this entry of the batch, its scratch.
struct Product {
  const GemmProblem& p;
  const TileSchedule& s;
  GemmOperands x;
  float *packed_a, *packed_b, *sums;  // sums: row-major block of C, or null

  void run(Workers& workers) const;
  void step(int64_t n0, int64_t k0, int64_t m0, bool pack_a, bool pack_b, Workers& workers) const;
  void pack_rows_of_a(int64_t m0, int64_t k0, int64_t first, int64_t last) const;
  void pack_columns_of_b(int64_t n0, int64_t k0, int64_t first, int64_t last) const;
  void task(int64_t n0, int64_t k0, int64_t m0, int64_t row_task, int64_t column_task) const;
  void task_in_place(int64_t n0, int64_t k0, int64_t m0, int64_t row_task, int64_t column_task) const;
  void compute(const Tile& t) const;
  void finish(const float* tile, int64_t row, int64_t rows, int64_t column, int64_t columns) const;

  int64_t rows_of(int64_t m0) const { return std::min(s.block_m, p.m - m0); }
  int64_t columns_of(int64_t n0) const { return std::min(s.block_n, p.n - n0); }
  int64_t depth_of(int64_t k0) const { return std::min(s.kc, p.k - k0); }
};

void Product::run(Workers& workers) const {
  const int64_t kn = ceil_div(p.n, s.block_n), km = ceil_div(p.m, s.block_m), kk = std::max<int64_t>(1, ceil_div(p.k, s.kc));
  int64_t last_a = -1, last_b = -1;  // what is packed now
  for (int64_t i = 0; i < kn * km * kk; ++i) {
    const int64_t n = i / (km * kk);
    const int64_t rest = i % (km * kk);
    const int64_t m = s.order == LoopOrder::n_k_m ? rest % km : rest / kk;
    const int64_t k = s.order == LoopOrder::n_k_m ? rest / km : rest % kk;
    const int64_t a = m * kk + k, b = n * kk + k;
    step(n * s.block_n, k * s.kc, m * s.block_m, a != last_a, b != last_b, workers);
    last_a = a;
    last_b = b;
  }
}

void Product::step(int64_t n0, int64_t k0, int64_t m0, bool pack_a, bool pack_b, Workers& workers) const {
  const int64_t panels_a = ceil_div(rows_of(m0), s.mr);
  const int64_t panels_b = ceil_div(columns_of(n0), s.nr);
  const bool ragged = columns_of(n0) % s.nr != 0;
  const int64_t tasks_a = pack_a ? ceil_div(panels_a, kPanelsPerPackTask) : 0;
  const int64_t tasks_b = !pack_b ? 0 : s.pack_b ? ceil_div(panels_b, kPanelsPerPackTask) : ragged ? 1 : 0;
  if (tasks_a + tasks_b > 0) {
    workers.run(tasks_a + tasks_b, [&](int64_t t) {
      const int64_t first = (t < tasks_a ? t : t - tasks_a) * kPanelsPerPackTask;
      if (t < tasks_a) {
        pack_rows_of_a(m0, k0, first, std::min(panels_a, first + kPanelsPerPackTask));
      } else if (s.pack_b) {
        pack_columns_of_b(n0, k0, first, std::min(panels_b, first + kPanelsPerPackTask));
      } else {
        pack_columns_of_b(n0, k0, panels_b - 1, panels_b);
      }
    });
  }
  const int64_t row_tasks = ceil_div(rows_of(m0), s.mc), column_tasks = ceil_div(columns_of(n0), s.nc);
  workers.run(row_tasks * column_tasks, [&](int64_t t) {
    if (s.pack_b) {
      task(n0, k0, m0, t / column_tasks, t % column_tasks);
    } else {
      task_in_place(n0, k0, m0, t / column_tasks, t % column_tasks);
    }
  });
}

void Product::pack_rows_of_a(int64_t m0, int64_t k0, int64_t first, int64_t last) const {
  with_element(p.a_type, [&](auto element) {
    using T = decltype(element);
    const PanelSource<T> a{static_cast<const T*>(x.a), p.a.row, p.a.column};
    const int64_t rows = rows_of(m0);
    pack_panels(a.at(m0, k0), first, last, rows, s.mr, rows % s.mr, depth_of(k0), packed_a);
  });
}

void Product::pack_columns_of_b(int64_t n0, int64_t k0, int64_t first, int64_t last) const {
  with_element(p.b_type, [&](auto element) {
    using T = decltype(element);
    const PanelSource<T> b{static_cast<const T*>(x.b), p.b.column, p.b.row};
    const int64_t columns = columns_of(n0), ragged = columns % s.nr > kWidth ? s.nr : kWidth;
    float* to = s.pack_b ? packed_b : packed_b - first * s.nr * depth_of(k0);
    pack_panels(b.at(n0, k0), first, last, columns, s.nr, ragged, depth_of(k0), to);
  });
}

void Product::task(int64_t n0, int64_t k0, int64_t m0, int64_t row_task, int64_t column_task) const {
  const int64_t depth = depth_of(k0), sum_stride = columns_of(n0);
  const int64_t row_begin = row_task * s.mc, row_end = std::min(rows_of(m0), row_begin + s.mc);
  const int64_t column_begin = column_task * s.nc, column_end = std::min(columns_of(n0), column_begin + s.nc);
  const int64_t panels = ceil_div(row_end - row_begin, s.mr);
  for (int64_t j = column_begin; j < column_end; j += s.nr) {
    const int64_t columns = std::min(s.nr, column_end - j), width = columns > kWidth ? s.nr : kWidth;
    for (int64_t i = row_begin; i < row_end; i += s.mr) {
      Tile t{.row = m0 + i, .rows = std::min(s.mr, row_end - i), .column = n0 + j, .columns = columns, .k0 = k0, .depth = depth};
      t.a = packed_a + i * depth;
      t.b = packed_b + j * depth;
      t.b_stride = width;
      if (sums != nullptr) t.sum = sums + i * sum_stride + j, t.sum_stride = sum_stride;
      if (j == column_begin && i + s.mr < row_end) {  // the task's panels of A are new
        t.ahead = t.a + s.mr * depth;
        t.ahead_step = s.mr;
      } else if (j + s.nr < column_end) {  // each tile of this panel of B fetches a share of the next one
        t.ahead_step = ceil_div(s.nr, panels);
        t.ahead = packed_b + (j + s.nr) * depth + (i - row_begin) / s.mr * depth * t.ahead_step;
      }
      compute(t);
    }
  }
}

/// Few rows: B is read where it lies, a few of its rows at a time over the whole task, and the sums wait in between. Each sum is the same
/// chain of additions as in task(), since it goes on from where it left off.
void Product::task_in_place(int64_t n0, int64_t k0, int64_t m0, int64_t row_task, int64_t column_task) const {
  constexpr int64_t kColumns = 8 * kTileColumns;
  float waiting[kRowsInPlace * kColumns];
  const int64_t depth = depth_of(k0), sum_stride = columns_of(n0);
  const int64_t row_begin = row_task * s.mc, row_end = std::min(rows_of(m0), row_begin + s.mc);
  const int64_t column_begin = column_task * s.nc, column_end = std::min(columns_of(n0), column_begin + s.nc);
  for (int64_t k = 0; k == 0 || k < depth; k += kRowsPerVisit) {
    const int64_t visit = std::min(kRowsPerVisit, depth - k);
    for (int64_t j = column_begin; j < column_end; j += s.nr) {
      const int64_t columns = std::min(s.nr, column_end - j), width = columns > kWidth ? s.nr : kWidth;
      const bool whole = columns == s.nr;
      const float* b = whole ? static_cast<const float*>(x.b) + (n0 + j) + (k0 + k) * p.b.row : packed_b + k * width;
      for (int64_t ahead = 0; whole && ahead < visit; ++ahead) {
        const float* next = b + (kRowsPerVisit + ahead) * p.b.row;
        for (int64_t line = 0; line < s.nr; line += 16) __builtin_prefetch(next + line);
      }
      for (int64_t i = row_begin; i < row_end; i += s.mr) {
        Tile t{.row = m0 + i, .rows = std::min(s.mr, row_end - i), .column = n0 + j, .columns = columns, .k0 = k0, .depth = visit};
        t.a = packed_a + i * depth + k * t.rows;
        t.b = b;
        t.b_stride = whole ? p.b.row : width;
        float* waits = waiting + (i - row_begin) * kColumns + (j - column_begin);
        if (k > 0) t.resume = waits, t.resume_stride = kColumns;
        if (k + visit < depth) {
          TileOut out{.c = waits, .stride = kColumns, .columns = width, .resume = t.resume, .resume_stride = kColumns, .finish = false};
          packed_kernel(t.rows, width / kWidth)(visit, t.a, t.b, t.b_stride, out);
        } else {
          if (sums != nullptr) t.sum = sums + i * sum_stride + j, t.sum_stride = sum_stride;
          compute(t);
        }
      }
    }
  }
}

void Product::compute(const Tile& t) const {
  const MicroKernel kernel = packed_kernel(t.rows, t.columns > kWidth ? 2 : 1);
  const bool first = t.k0 == 0, last = t.k0 + depth_of(t.k0) == p.k;
  TileOut out{.c = nullptr, .stride = 0, .columns = t.columns, .resume = t.resume, .resume_stride = t.resume_stride};
  out.ahead = t.ahead, out.ahead_step = t.ahead_step;
  out.finish = last, out.alpha = p.alpha, out.beta = p.beta;
  if (last && (p.c_type != DType::f32 || p.c.column != 1)) {
    float unrounded[kTileRows * kTileColumns];
    out.c = unrounded;
    out.stride = kTileColumns;
    out.finish = false;
    if (!first) out.sum = t.sum, out.sum_stride = t.sum_stride;
    kernel(t.depth, t.a, t.b, t.b_stride, out);
    finish(unrounded, t.row, t.rows, t.column, t.columns);
    return;
  }
  float* c = static_cast<float*>(x.c) + t.row * p.c.row + t.column;
  if (p.bias && last) out.bias = static_cast<const float*>(x.bias) + t.column;
  if (sums == nullptr) {  // C holds the partial sums
    out.c = c;
    out.stride = p.c.row;
    if (!first) out.sum = c, out.sum_stride = p.c.row;
  } else {
    out.c = last ? c : t.sum;
    out.stride = last ? p.c.row : t.sum_stride;
    if (!first) out.sum = t.sum, out.sum_stride = t.sum_stride;
  }
  kernel(t.depth, t.a, t.b, t.b_stride, out);
}

/// The last write of a C that is not rows of fp32: same arithmetic as the micro-kernel's, one element at a time.
void Product::finish(const float* tile, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  with_element(p.c_type, [&](auto element) {
    using T = decltype(element);
    T* c = static_cast<T*>(x.c) + row * p.c.row + column * p.c.column;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        T& to = c[i * p.c.row + j * p.c.column];
        float value = tile[i * kTileColumns + j];
        if (p.alpha != 1) value *= p.alpha;
        if (p.beta != 0) value += p.beta * widen(to);
        if (p.bias) value += widen(static_cast<const T*>(x.bias)[column + j]);
        to = narrow<T>(value);
      }
    }
  });
}

/// Column-major C is the transposed problem with row-major C; a bias along N would then run along M, so it stays as it is.
bool is_transposed(const GemmProblem& p) { return p.c.row == 1 && p.c.column != 1 && !p.bias; }

GemmProblem row_major(const GemmProblem& p) {
  if (!is_transposed(p)) return p;
  GemmProblem t = p;
  t.m = p.n, t.n = p.m;
  t.a = p.b.transposed(), t.b = p.a.transposed(), t.c = p.c.transposed();
  t.a_batch = p.b_batch, t.b_batch = p.a_batch;
  t.a_type = p.b_type, t.b_type = p.a_type;
  return t;
}

bool shares_batch(const GemmProblem& p) { return p.batch > 1 && p.m * p.n * p.k <= kSmallProduct; }

}  // namespace

TileSchedule gemm_schedule(const GemmProblem& problem) { return choose_schedule(row_major(problem), kInstructionSet); }

int64_t gemm_workspace(const GemmProblem& problem, const TileSchedule& schedule, int threads) {
  const GemmProblem p = row_major(problem);
  return scratch_bytes(p, schedule) * (shares_batch(p) ? std::min<int64_t>(threads, p.batch) : 1);
}

void gemm(const GemmProblem& problem, const TileSchedule& schedule, const GemmOperands& operands, std::span<std::byte> workspace,
          Workers& workers) {
  const GemmProblem p = row_major(problem);
  if (p.m == 0 || p.n == 0) return;
  GemmOperands given = operands;
  if (is_transposed(problem)) std::swap(given.a, given.b);
  const ScratchLayout layout = scratch_layout(p, schedule);
  const auto one = [&](int64_t entry, int64_t lane) {
    const auto scratch = [&](int64_t at) { return reinterpret_cast<float*>(workspace.data() + lane * layout.bytes + at); };
    GemmOperands x = given;
    x.a = offset(given.a, entry * p.a_batch, p.a_type);
    x.b = offset(given.b, entry * p.b_batch, p.b_type);
    x.c = const_cast<std::byte*>(offset(given.c, entry * p.c_batch, p.c_type));
    Product{p, schedule, x, scratch(layout.a), scratch(layout.b), sums_apart(p, schedule) ? scratch(layout.sums) : nullptr}.run(workers);
  };
  if (!shares_batch(p)) {
    for (int64_t entry = 0; entry < p.batch; ++entry) one(entry, 0);
    return;
  }
  // Small products: one lane of scratch a thread, each lane takes the next entry of the batch. Which lane takes which changes no bit.
  std::atomic<int64_t> next = 0;
  workers.run(std::min<int64_t>(workers.threads(), p.batch), [&](int64_t lane) {
    for (int64_t entry = next++; entry < p.batch; entry = next++) one(entry, lane);
  });
}

}  // namespace st::cpu::ST_ISA

#define ST_ENTRY_OF(isa) ST_ENTRY_OF_(isa)
#define ST_ENTRY_OF_(isa) st_cpu_gemm_##isa

extern "C" const st::cpu::GemmEntry* ST_ENTRY_OF(ST_ISA)() {
  namespace isa = st::cpu::ST_ISA;
  static const st::cpu::GemmEntry entry{isa::micro::kInstructionSet, isa::gemm_schedule, isa::gemm_workspace, isa::gemm};
  return &entry;
}
