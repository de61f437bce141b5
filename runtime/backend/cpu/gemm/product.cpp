// C = alpha * op(A) op(B) + beta * C by packed panels, for one problem or a batch.
//
// The block loops (in the schedule's order) cut N, K and M. In each step all threads pack the blocks of A and B that changed (or the tasks
// pack B), then all threads take tasks of mc x nc. A task loops over its panels of B and, for each, over its panels of A: the panel of B
// and the task's A stay in L2. K blocks are added in order and none is shared between threads, so threads and blocks change no bit; kc
// does.
#include "backend/cpu/gemm/product.h"

#include <algorithm>

#include "backend/cpu/convert.h"
#include "backend/cpu/gemm/epilogue_rows.h"
#include "backend/cpu/gemm/float_rows.h"
#include "backend/cpu/gemm/micro.h"
#include "backend/cpu/gemm/pack.h"
#include "backend/cpu/gemm/packing_order.h"
#include "gemm/rounding.h"
#if defined(ST_BF16_PAIRS)
#include "backend/cpu/gemm/bf16_store.h"
#include "backend/cpu/gemm/pack_pairs.h"
#endif
#if defined(ST_BF16_TILES)
#include "backend/cpu/gemm/pack_tiles.h"
#include "backend/cpu/gemm/tile_task.h"
#endif

namespace st::cpu::ST_ISA {

using namespace micro;

namespace {

constexpr int64_t kPanelsPerPackTask = kPairs ? 8 : 4;

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

/// Kernels of pairs have bf16 operands.
template <class Body>
void with_operand([[maybe_unused]] DType type, Body&& body) {
  if constexpr (kPairs) {
    body(bf16{});
  } else {
    with_element(type, body);
  }
}

/// Packs panels first .. last - 1 of `extent` rows or columns: whole ones and, if included, the partial last one.
template <class T>
void pack_panels(const PanelSource<T>& from, int64_t first, int64_t last, int64_t extent, int64_t width, int64_t ragged_width,
                 int64_t depth, Cell* to) {
  const int64_t whole = std::min(last, extent / width), step = width * cells_of(depth);
  const auto source = [&](int64_t panel) { return from.at(panel * width, 0); };
  if (from.across_stride == 1 && first < whole) {
    pack_side_by_side(source(first), whole - first, width, depth, step, to + first * step);
    first = whole;
  }
  for (; first < whole; ++first) pack_panel(source(first), width, width, depth, to + first * step);
  if (first < last) pack_panel(source(first), extent - first * width, ragged_width, depth, to + first * step);
}

}  // namespace

void Product::run(Workers& workers) const {
  const int64_t kn = ceil_div(p.n, s.block_n), km = ceil_div(p.m, s.block_m), kk = std::max<int64_t>(1, ceil_div(p.k, s.block_k));
  int64_t last_a = -1, last_b = -1;  // blocks packed at present
  for (int64_t i = 0; i < kn * km * kk; ++i) {
    const int64_t n = i / (km * kk);
    const int64_t rest = i % (km * kk);
    const int64_t m = s.order == LoopOrder::n_k_m ? rest % km : rest / kk;
    const int64_t k = s.order == LoopOrder::n_k_m ? rest / km : rest % kk;
    const int64_t a = m * kk + k, b = n * kk + k;
    step(n * s.block_n, k * s.block_k, m * s.block_m, a != last_a, b != last_b, workers);
    last_a = a;
    last_b = b;
  }
}

void Product::step(int64_t n0, int64_t k0, int64_t m0, bool pack_a, bool pack_b, Workers& workers) const {
  const int64_t panels_a = ceil_div(rows_of(m0), s.mr);
  const int64_t panels_b = ceil_div(columns_of(n0), s.nr);
  const bool packs_rows = pack_a && ready_a == nullptr && !kOfTiles;
  const TaskGrid grid = task_grid(s, rows_of(m0), columns_of(n0), workers.threads(), packs_rows && p.a.column == 1);
  const bool packs_own_rows = packs_rows && grid.across == 1;
  const int64_t tasks_a = pack_a && ready_a == nullptr && !packs_own_rows ? ceil_div(panels_a, kPanelsPerPackTask) : 0;
  const bool on_the_way = kHasPackingKernel && pack_b && packs_on_the_way(m0, grid, workers.threads());
  const int64_t tasks_b = pack_b ? pack_tasks_of_b(n0, on_the_way) : 0;
  if (tasks_a + tasks_b > 0) {
    workers.run(tasks_a + tasks_b, [&](int64_t t) {
      const int64_t first = (t < tasks_a ? t : t - tasks_a) * kPanelsPerPackTask;
      if (t < tasks_a) {
        each_k_block(k0, [&](int64_t k) {
          pack_rows_of_a(m0, k, first, std::min(panels_a, first + kPanelsPerPackTask), packed_a + place_in_block_of_a(m0, k));
        });
      } else if (kHasPackingKernel && on_the_way) {
        pack_columns_of_b(n0, k0, panels_b - 1, panels_b, packed_b + place_in_block_of_b(n0, k0));
      } else if (s.packs_b()) {
        each_k_block(k0, [&](int64_t k) {
          pack_columns_of_b(n0, k, first, std::min(panels_b, first + kPanelsPerPackTask), packed_b + place_in_block_of_b(n0, k));
        });
      } else {
        pack_columns_of_b(n0, k0, panels_b - 1, panels_b, packed_b - (panels_b - 1) * s.nr * cells_of(depth_of(k0)));
      }
    });
  }
  const bool last = p.k - k0 <= s.block_k, changed_after = last && x.epilogue != nullptr && x.epilogue->changes_c();
  const bool in_place = !s.packs_b() && ready_b == nullptr;
#if defined(ST_BF16_TILES)
  SumBuffers rooms(sum_rooms(p, s), p.k > s.block_k);
#endif
  const auto run_task = [&](int64_t t, [[maybe_unused]] bool packing) {
    const TaskBlock block = grid.at(t);
    if (packs_own_rows) {
      each_k_block(k0, [&](int64_t k) {
        pack_rows_of_a(m0, k, block.row / s.mr, ceil_div(block.row + block.rows, s.mr), packed_a + place_in_block_of_a(m0, k));
      });
    }
#if defined(ST_BF16_TILES)
    const int64_t room = rooms.take(t);
    if (in_place) {
      task_in_place(n0, k0, m0, block, sums + room * s.mc * s.nc);
    } else {
      tile_task(n0, k0, m0, block, room);
    }
    rooms.give_back(room);
#else
    each_k_block(k0, [&](int64_t k) {
      if (in_place) {
        alignas(64) float waiting[kSumsInPlace * kTileColumns];
        return task_in_place(n0, k, m0, block, waiting);
      }
      task(n0, k, m0, block, packing);
    });
#endif
    if (!changed_after) return;
    apply_epilogue(*x.epilogue, {x.c, p.c, p.c_type, m0 + block.row, block.rows, n0 + block.column, block.columns});  // still in L2
  };
  if (!kHasPackingKernel || !on_the_way) return workers.run(grid.count(), [&](int64_t t) { run_task(t, false); });
  workers.run(grid.across, [&](int64_t t) { run_task(t * grid.down, true); });  // the first tasks of rows pack all of B for the others
  const int64_t others = grid.down - 1;
  workers.run(grid.across * others, [&](int64_t t) { run_task(t / others * grid.down + 1 + t % others, false); });
}

/// Whether the first tile on each panel of B reads it in place and packs it, instead of a separate pass. No bit depends on it.
bool Product::packs_on_the_way(int64_t m0, const TaskGrid& grid, int threads) const {
  if (!kHasPackingKernel || !gains_on_the_way(p.b.row * 4) || !s.packs_b() || ready_b != nullptr ||
      packing_kernel(std::min(s.mr, rows_of(m0))) == nullptr)
    return false;
  if (p.b_type != DType::f32 || p.b.column != 1 || p.k == 0) return false;
  return grid.across % threads == 0 || grid.across >= 8 * threads;  // since all threads wait for the first tasks of rows
}

int64_t Product::pack_tasks_of_b(int64_t n0, bool on_the_way) const {
  if (ready_b != nullptr || packs_by_task(p, s)) return 0;
  if (on_the_way) return columns_of(n0) % s.nr != 0 ? 1 : 0;
  if (s.packs_b()) return ceil_div(ceil_div(columns_of(n0), s.nr), kPanelsPerPackTask);
  return !kPairs && columns_of(n0) % s.nr != 0 ? 1 : 0;  // in place: only the partial last panel
}

void Product::pack_rows_of_a(int64_t m0, int64_t k0, int64_t first, int64_t last, Cell* to) const {
  with_operand(p.a_type, [&](auto element) {
    using T = decltype(element);
    const PanelSource<T> a{static_cast<const T*>(x.a), p.a.row, p.a.column};
    const int64_t rows = rows_of(m0);
#if defined(ST_BF16_TILES)
    for (int64_t i = first * s.mr; i < std::min(rows, last * s.mr); i += s.mr) {
      const int64_t valid = std::min(s.mr, rows - i);
      pack_tiles(a.at(m0 + i, k0), valid, padded_rows(valid), depth_of(k0), to + i * cells_of(depth_of(k0)));
    }
#else
    pack_panels(a.at(m0, k0), first, last, rows, s.mr, rows % s.mr, depth_of(k0), to);
#endif
  });
}

void Product::pack_columns_of_b(int64_t n0, int64_t k0, int64_t first, int64_t last, Cell* to) const {
  with_operand(p.b_type, [&](auto element) {
    using T = decltype(element);
    const PanelSource<T> b{static_cast<const T*>(x.b), p.b.column, p.b.row};
    const int64_t columns = columns_of(n0), ragged = columns % s.nr > kWidth ? s.nr : kWidth;
    pack_panels(b.at(n0, k0), first, last, columns, s.nr, ragged, depth_of(k0), to);
  });
}

int64_t Product::place_of_a(int64_t m0, int64_t k0) const { return m0 * cells_of(p.k) + padded_rows(rows_of(m0)) * cells_of(k0); }

int64_t Product::place_of_b(int64_t n0, int64_t k0) const { return n0 * cells_of(p.k) + padded_columns(columns_of(n0)) * cells_of(k0); }

int64_t Product::place_in_block_of_a(int64_t m0, int64_t k0) const { return padded_rows(rows_of(m0)) * cells_of(k0 % s.block_k); }

int64_t Product::place_in_block_of_b(int64_t n0, int64_t k0) const { return padded_columns(columns_of(n0)) * cells_of(k0 % s.block_k); }

int64_t Product::padded_columns(int64_t columns) const {
  const int64_t ragged = columns % s.nr;
  return columns - ragged + (ragged == 0 ? 0 : ragged > kWidth ? s.nr : kWidth);
}

/// Block by block, one K block after the other.
void Product::pack_all_a(Cell* to, Workers& workers) const {
  for (int64_t m0 = 0; m0 < p.m; m0 += s.block_m) {
    for (int64_t k0 = 0; k0 < p.k; k0 += s.kc) {
      const int64_t panels = ceil_div(rows_of(m0), s.mr);
      workers.run_range(panels, kPanelsPerPackTask,
                        [&](int64_t first, int64_t last) { pack_rows_of_a(m0, k0, first, last, to + place_of_a(m0, k0)); });
    }
  }
}

void Product::pack_all_b(Cell* to, Workers& workers) const {
  for (int64_t n0 = 0; n0 < p.n; n0 += s.block_n) {
    for (int64_t k0 = 0; k0 < p.k; k0 += s.kc) {
      const int64_t panels = ceil_div(columns_of(n0), s.nr);
      workers.run_range(panels, kPanelsPerPackTask,
                        [&](int64_t first, int64_t last) { pack_columns_of_b(n0, k0, first, last, to + place_of_b(n0, k0)); });
    }
  }
}

bool Product::fetches_next_panel(Tile& t, int64_t n0, int64_t j, int64_t tile) const {
  const int64_t line = (tile - 1) * kLine / static_cast<int64_t>(sizeof(Cell));  // each tile fetches a line of every row
  if (tile < 1 || line > s.nr || j + s.nr > columns_of(n0)) return false;        // if lines are not aligned, also the last
  t.ahead = static_cast<const Cell*>(x.b) + t.k0 * p.b.row + n0 + j + std::min(line, s.nr - 1);
  t.ahead_step = p.b.row;
  return true;
}

void Product::task(int64_t n0, int64_t k0, int64_t m0, const TaskBlock& block, bool packing) const {
  const int64_t depth = cells_of(depth_of(k0)), sum_stride = columns_of(n0);
  const int64_t row_begin = block.row, row_end = block.row + block.rows;
  const int64_t column_begin = block.column, column_end = block.column + block.columns;
  const Cell* const panels_of_a = ready_a != nullptr ? ready_a + place_of_a(m0, k0) : packed_a + place_in_block_of_a(m0, k0);
  const Cell* const panels_of_b = ready_b != nullptr ? ready_b + place_of_b(n0, k0) : packed_b + place_in_block_of_b(n0, k0);
  const int64_t panels = ceil_div(row_end - row_begin, s.mr);
  for (int64_t j = column_begin; j < column_end; j += s.nr) {
    const int64_t columns = std::min(s.nr, column_end - j), width = columns > kWidth ? s.nr : kWidth;
    for (int64_t i = row_begin; i < row_end; i += s.mr) {
      Tile t{.row = m0 + i, .rows = std::min(s.mr, row_end - i), .column = n0 + j, .columns = columns, .k0 = k0, .depth = depth};
      t.a = panels_of_a + i * depth;
      t.b = panels_of_b + j * depth;
      t.b_stride = width;
      if (sums != nullptr) t.sum = sums + i * sum_stride + j, t.sum_stride = sum_stride;
      if (kHasPackingKernel && packing && i == row_begin && columns == s.nr) {
        t.packed = packed_b + place_in_block_of_b(n0, k0) + j * depth;
        t.b = static_cast<const Cell*>(x.b) + k0 * p.b.row + n0 + j;
        t.b_stride = p.b.row;
      }
      const bool fetching = kHasPackingKernel && packing && fetches_next_panel(t, n0, j + s.nr, (i - row_begin) / s.mr);
      if (!fetching && j == column_begin && i + s.mr < row_end) {  // the task's panels of A are new
        t.ahead = t.a + s.mr * depth;
        t.ahead_step = s.mr;
      } else if (!fetching && j + s.nr < column_end) {  // each tile of this panel of B fetches a share of the next one
        t.ahead_step = ceil_div(s.nr, panels);
        t.ahead = panels_of_b + (j + s.nr) * depth + (i - row_begin) / s.mr * depth * t.ahead_step;
      }
      compute(t);
    }
  }
}

void Product::compute(const Tile& t) const {
  const MicroKernel kernel =
      kHasPackingKernel && t.packed != nullptr ? packing_kernel(t.rows) : packed_kernel(t.rows, t.columns > kWidth ? 2 : 1);
  const bool first = t.k0 == 0, last = t.k0 + depth_of(t.k0) == p.k;
  TileOut out{.c = nullptr, .stride = 0, .columns = t.columns, .rows = t.rows, .resume = t.resume, .resume_stride = t.resume_stride};
  out.ahead = t.ahead, out.ahead_step = t.ahead_step, out.lines = t.lines, out.packed = t.packed;
  if (last && p.c.column == 1) {
    const int64_t size = p.c_type == DType::f32 ? 4 : 2;
    out.target = static_cast<const std::byte*>(x.c) + (t.row * p.c.row + t.column) * size;
    out.target_step = p.c.row * size;
  }
  out.finish = last, out.alpha = p.alpha, out.beta = p.beta;
  if (last && (p.c_type != DType::f32 || p.c.column != 1 || (p.bias && bias_along_rows))) {
    alignas(64) float unrounded[kTileRows * kTileColumns];
    out.c = unrounded;
    out.stride = kTileColumns;
    out.finish = false;
    if (!first && sums != nullptr) out.sum = t.sum, out.sum_stride = t.sum_stride;
    if (!first && sums == nullptr) out.sum = static_cast<const float*>(x.c) + t.row * p.c.row + t.column, out.sum_stride = p.c.row;
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

/// The last write of a C that is not in fp32 rows: the micro-kernel's arithmetic, row by row.
void Product::finish(const float* tile, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  float c[kTileColumns], bias[kTileColumns];
  if (p.bias && !bias_along_rows) read_floats(x.bias, p.c_type, column, 1, columns, bias);
#if defined(ST_BF16_PAIRS)
  if (p.c_type == DType::bf16 && p.c.column == 1 && p.beta == 0 && columns == kTileColumns && !(p.bias && bias_along_rows)) {
    const Lanes alpha = broadcast(p.alpha);
    for (int64_t i = 0; i < rows; ++i) {
      Lanes low = micro::load(tile + i * kTileColumns), high = micro::load(tile + i * kTileColumns + kWidth);
      if (p.alpha != 1) low = low * alpha, high = high * alpha;
      if (p.bias) low = low + micro::load(bias), high = high + micro::load(bias + kWidth);
      store_bf16(low, high, static_cast<bf16*>(x.c) + (row + i) * p.c.row + column);
    }
    return;
  }
#endif
  if (p.c.column == 1 && !(p.bias && bias_along_rows)) {
    return with_element(p.c_type, [&](auto element) {
      for (int64_t i = 0; i < rows; ++i) {
        auto* to = static_cast<decltype(element)*>(x.c) + (row + i) * p.c.row + column;
        each_vector<float>(columns, [&](int64_t j, int64_t n) {
          F32 value = st::cpu::ST_ISA::load(tile + i * kTileColumns + j);
          if (p.alpha != 1) value *= F32(p.alpha);
          if (p.beta != 0) value += F32(p.beta) * load_part(to + j, n);
          if (p.bias) value += st::cpu::ST_ISA::load(bias + j);
          store_part(to + j, value, n);
        });
      }
    });
  }
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = (row + i) * p.c.row + column * p.c.column;
    if (p.beta != 0) read_floats(x.c, p.c_type, at, p.c.column, columns, c);
    if (p.bias && bias_along_rows) {
      read_floats(x.bias, p.c_type, row + i, 1, 1, bias);
      std::fill_n(bias + 1, columns - 1, bias[0]);
    }
    alignas(64) float finished[kTileColumns];
    for (int64_t j = 0; j < columns; ++j) {
      float value = tile[i * kTileColumns + j];
      if (p.alpha != 1) value *= p.alpha;
      if (p.beta != 0) value += p.beta * c[j];
      if (p.bias) value += bias[j];
      finished[j] = value;
    }
    write_floats(finished, columns, x.c, p.c_type, at, p.c.column);
  }
}

}  // namespace st::cpu::ST_ISA
