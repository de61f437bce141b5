#include "backend/cpu/gemm/tile_task.h"

#include <algorithm>

namespace st::cpu::ST_ISA {

using namespace micro;

void Product::tile_task(int64_t n0, int64_t k0, int64_t m0, int64_t row_task, int64_t column_task, int64_t room) const {
  const TileRegisters registers;
  const int64_t row_begin = row_task * s.mc, row_end = std::min(rows_of(m0), row_begin + s.mc);
  const int64_t column_begin = column_task * s.nc, column_end = std::min(columns_of(n0), column_begin + s.nc);
  const int64_t rows = padded_rows(row_end - row_begin), columns = padded_columns(column_end - column_begin);
  const auto panels_of_a = [&](int64_t k) {
    return ready_a != nullptr ? ready_a + place_of_a(m0, k) : packed_a + place_in_block_of_a(m0, k);
  };
  const auto panels_of_b = [&](int64_t k) {
    return ready_b != nullptr ? ready_b + place_of_b(n0, k) : packed_b + place_in_block_of_b(n0, k);
  };
  const int64_t end = std::min(p.k, k0 + s.block_k);
  each_piece(k0, [&](int64_t k) {
    const int64_t depth = cells_of(depth_of(k)), next = k + s.kc;
    const int64_t products = rows * columns / (kTile * kTile) * depth / kTile / 4;
    Ahead ahead(nullptr, 0, nullptr, 0, 1);
    if (next < end) {
      const int64_t deep = cells_of(depth_of(next));
      ahead = Ahead(panels_of_b(next) + column_begin * deep, columns * deep, panels_of_a(next) + row_begin * deep, rows * deep, products);
    } else if (column_end < columns_of(n0)) {
      const int64_t deep = cells_of(depth_of(k0)), wide = std::min(s.nc, columns_of(n0) - column_end);
      ahead = Ahead(panels_of_b(k0) + column_end * deep, padded_columns(wide) * deep, nullptr, 0, products);
    }
    float* sum = sums == nullptr ? nullptr : sums + room * s.mc * s.nc;
    for (int64_t j = column_begin; j < column_end; j += s.nr) {
      const int64_t wide = std::min(s.nr, column_end - j), width = wide > kWidth ? s.nr : kWidth;
      for (int64_t i = row_begin; i < row_end; i += s.mr) {
        Tile t{.row = m0 + i, .rows = std::min(s.mr, row_end - i), .column = n0 + j, .columns = wide, .k0 = k, .depth = depth};
        t.a = panels_of_a(k) + i * depth;
        t.b = panels_of_b(k) + j * depth;
        t.b_stride = width;
        if (sum != nullptr) t.sum = sum, t.sum_stride = kTileColumns, sum += s.mr * s.nr;
        ahead.fetch_during(t);
        compute(t);
      }
    }
  });
}

}  // namespace st::cpu::ST_ISA
