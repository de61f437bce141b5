#include "backend/cpu/gemm/tile_task.h"

#include <algorithm>

#include "backend/cpu/gemm/in_place.h"
#include "backend/cpu/gemm/tile_write.h"
#include "backend/cpu/gemm/tiles.h"

namespace st::cpu::ST_ISA {

using namespace micro;

namespace {

/// Prefetches a block of an unpacked B.
void fetch_columns_of_b(const Panels& panels, LinesAhead& ahead, int64_t column, int64_t columns, int64_t k) {
  constexpr int64_t kSize = 2;
  const MatrixStrides& strides = panels.cut.p.b;
  const auto* const b = static_cast<const std::byte*>(panels.b) + (column * strides.column + k * strides.row) * kSize;
  if (strides.column == 1) {
    ahead.add(b, columns * kSize, panels.cut.depth(k), strides.row * kSize);
  } else if (strides.row == 1) {
    ahead.add(b, panels.cut.depth(k) * kSize, columns, strides.column * kSize);
  }
}

}  // namespace

void tile_task(const Product& product, const BlockOrigin& at, const TaskBlock& block, int64_t buffer, bool in_place) {
  const Panels& panels = product.panels;
  const Blocking& cut = panels.cut;
  const GemmProblem& p = cut.p;
  const TileSchedule& s = cut.s;
  float* const sums = product.sums == nullptr ? nullptr : product.sums + buffer * s.mc * s.nc;
  if (in_place) return task_in_place(product, at, block, sums);
  const TileRegisters registers;
  const int64_t row_begin = block.row, row_end = block.row + block.rows;
  const int64_t column_begin = block.column, column_end = block.column + block.columns;
  const int64_t rows = padded_rows(block.rows), columns = cut.padded_columns(block.columns);
  const bool ready = panels.packed_b != nullptr || !packs_by_task(p, s);  // packed before
  const int64_t widest = std::min(s.nc, round_up(p.n, s.nr));
  Cell* const own = panels.block_b + buffer * widest * cells_of(s.kc);  // this task's block of B
  const int64_t end = cut.end_of_k(at.k);
  cut.each_k_block(at.k, [&](int64_t k) {
    const int64_t depth = cells_of(cut.depth(k)), next = k + s.kc;
    const int64_t row_panels = ceil_div(rows, s.mr), column_panels = ceil_div(columns, s.nr);
    const Cell* const panels_of_b = ready ? panels.of_b(at.n, k) + column_begin * depth : own;
    if (!ready) panels.pack_columns_of_b(at.n, k, column_begin / s.nr, column_begin / s.nr + column_panels, own - column_begin * depth);
    LinesAhead ahead;
    const int64_t after = column_end, after_end = std::min(cut.columns(at.n), after + s.nc);
    if (next < end) {
      const int64_t deep = cells_of(cut.depth(next));
      if (ready) {
        ahead.add(panels.of_b(at.n, next) + column_begin * deep, columns * deep);
      } else {
        fetch_columns_of_b(panels, ahead, at.n + column_begin, column_end - column_begin, next);
      }
      ahead.add(panels.of_a(at.m, next) + row_begin * deep, rows * deep);
    } else if (after < after_end) {
      const int64_t deep = cells_of(cut.depth(at.k));
      if (ready) {
        ahead.add(panels.of_b(at.n, at.k) + after * deep, cut.padded_columns(after_end - after) * deep);
      } else {
        fetch_columns_of_b(panels, ahead, at.n + after, after_end - after, at.k);
      }
    }
    ahead.spread(row_panels * column_panels * depth / kTile);
    float* sum = sums;
    for (int64_t j = column_begin; j < column_end; j += s.nr) {
      const int64_t wide = std::min(s.nr, column_end - j);
      for (int64_t i = row_begin; i < row_end; i += s.mr) {
        Tile t{.row = at.m + i, .rows = std::min(s.mr, row_end - i), .column = at.n + j, .columns = wide, .k = k, .depth = depth};
        t.a = panels.of_a(at.m, k) + i * depth;
        t.b = panels_of_b + (j - column_begin) * depth;
        t.b_stride = cut.width_of(wide);
        if (sum != nullptr) t.sum = sum, t.sum_stride = kTileColumns, sum += s.mr * s.nr;
        t.lines = &ahead;
        write_tile(product, t);
      }
    }
  });
}

}  // namespace st::cpu::ST_ISA
