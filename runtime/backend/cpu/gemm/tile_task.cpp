#include "backend/cpu/gemm/tile_task.h"

#include <algorithm>

namespace st::cpu::ST_ISA {

using namespace micro;

void Product::tile_task(int64_t n0, int64_t k0, int64_t m0, const TaskBlock& block, int64_t room) const {
  const TileRegisters registers;
  const int64_t row_begin = block.row, row_end = block.row + block.rows;
  const int64_t column_begin = block.column, column_end = block.column + block.columns;
  const int64_t rows = padded_rows(block.rows), columns = padded_columns(block.columns);
  const auto panels_of_a = [&](int64_t k) {
    return ready_a != nullptr ? ready_a + place_of_a(m0, k) : packed_a + place_in_block_of_a(m0, k);
  };
  const auto panels_of_b = [&](int64_t k) {
    return ready_b != nullptr ? ready_b + place_of_b(n0, k) : packed_b + place_in_block_of_b(n0, k);
  };
  const bool ready = ready_b != nullptr || !packs_by_task(p, s);  // packed before
  const int64_t widest = std::min(s.nc, (p.n + s.nr - 1) / s.nr * s.nr);
  Cell* const own = packed_b + room * widest * cells_of(s.kc);  // this task's block of B
  const int64_t end = std::min(p.k, k0 + s.block_k);
  each_k_block(k0, [&](int64_t k) {
    const int64_t depth = cells_of(depth_of(k)), next = k + s.kc;
    const int64_t row_panels = (rows + s.mr - 1) / s.mr, column_panels = (columns + s.nr - 1) / s.nr;
    const Cell* const panels = ready ? panels_of_b(k) + column_begin * depth : own;
    if (!ready) pack_columns_of_b(n0, k, column_begin / s.nr, column_begin / s.nr + column_panels, own - column_begin * depth);
    LinesAhead ahead;
    const int64_t after = column_end, after_end = std::min(columns_of(n0), after + s.nc);
    if (next < end) {
      const int64_t deep = cells_of(depth_of(next));
      if (ready) {
        ahead.add(panels_of_b(next) + column_begin * deep, columns * deep);
      } else {
        fetch_columns_of_b(ahead, n0 + column_begin, column_end - column_begin, next);
      }
      ahead.add(panels_of_a(next) + row_begin * deep, rows * deep);
    } else if (after < after_end) {
      const int64_t deep = cells_of(depth_of(k0));
      if (ready) {
        ahead.add(panels_of_b(k0) + after * deep, padded_columns(after_end - after) * deep);
      } else {
        fetch_columns_of_b(ahead, n0 + after, after_end - after, k0);
      }
    }
    ahead.spread(row_panels * column_panels * depth / kTile);
    float* sum = sums == nullptr ? nullptr : sums + room * s.mc * s.nc;
    for (int64_t j = column_begin; j < column_end; j += s.nr) {
      const int64_t wide = std::min(s.nr, column_end - j), width = wide > kWidth ? s.nr : kWidth;
      for (int64_t i = row_begin; i < row_end; i += s.mr) {
        Tile t{.row = m0 + i, .rows = std::min(s.mr, row_end - i), .column = n0 + j, .columns = wide, .k0 = k, .depth = depth};
        t.a = panels_of_a(k) + i * depth;
        t.b = panels + (j - column_begin) * depth;
        t.b_stride = width;
        if (sum != nullptr) t.sum = sum, t.sum_stride = kTileColumns, sum += s.mr * s.nr;
        t.lines = &ahead;
        compute(t);
      }
    }
  });
}

/// Prefetches a block of an unpacked B.
void Product::fetch_columns_of_b(LinesAhead& ahead, int64_t column, int64_t columns, int64_t k) const {
  constexpr int64_t kSize = 2;
  const auto* const b = static_cast<const std::byte*>(x.b) + (column * p.b.column + k * p.b.row) * kSize;
  if (p.b.column == 1) {
    ahead.add(b, columns * kSize, depth_of(k), p.b.row * kSize);
  } else if (p.b.row == 1) {
    ahead.add(b, depth_of(k) * kSize, columns, p.b.column * kSize);
  }
}

}  // namespace st::cpu::ST_ISA
