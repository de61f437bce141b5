// Few rows of C with products of pairs: B is read once, in place. Its rows (or columns) are read as streams, 32 elements of K at a time; 32
// columns at a time are turned into pairs in L1 and multiplied by all rows, while the sums are kept. A sum is the same chain of additions
// as with packed panels, because it continues from the previous elements.
#include <algorithm>

#include "backend/cpu/gemm/micro.h"
#include "backend/cpu/gemm/pack_pairs.h"
#include "backend/cpu/gemm/product.h"
#if defined(ST_BF16_TILES)
#include "backend/cpu/gemm/tiles.h"
#endif

namespace st::cpu::ST_ISA {

using namespace micro;

namespace {

constexpr int64_t kVisit = 32;  // elements of K

/// A few columns of B as pairs.
struct alignas(64) Pairs {
  Cell cells[kVisit / 2 * kTileColumns];

  void take(const PanelSource<bf16>& from, int64_t columns, int64_t depth) {
    if (from.across_stride == 1 && columns == kTileColumns && depth == kVisit) {
      pack_pairs_32(from, kVisit / 2, cells);
    } else {
      pack_panel(from, columns, columns > kWidth ? kTileColumns : kWidth, depth, cells);
    }
  }
};

}  // namespace

void Product::task_in_place(int64_t n0, int64_t k0, int64_t m0, const TaskBlock& block, float* waiting) const {
  const int64_t row_begin = block.row, rows = block.rows, column_begin = block.column, columns = block.columns;
  const int64_t across = (columns + s.nr - 1) / s.nr * s.nr;
  const PanelSource<bf16> b = PanelSource<bf16>{static_cast<const bf16*>(x.b), p.b.column, p.b.row}.at(n0 + column_begin, 0);
#if defined(ST_BF16_TILES)
  const TileRegisters registers(rows);
  const auto pieces = [&](const auto& body) { each_k_block(k0, body); };
#else
  const auto pieces = [&](const auto& body) { body(k0); };
#endif
  int64_t last = k0;
  pieces([&](int64_t k) { last = k; });
  /// body(tile, sums) for the tiles of a few columns; sums have the kernel's layout.
  const auto each_tile = [&](int64_t j, const auto& body) {
    for (int64_t i = 0; i < rows; i += s.mr) {
      const int64_t high = std::min(s.mr, rows - i);
      Tile t{.row = m0 + row_begin + i, .rows = high, .column = n0 + column_begin + j, .columns = std::min(s.nr, columns - j), .k0 = last};
      t.resume = waiting + i * across + j * padded_rows(high);
      t.resume_stride = t.columns > kWidth ? s.nr : kWidth;
      body(t, waiting + i * across + j * padded_rows(high));
    }
  };
  Pairs pairs;
  const auto visit = [&](int64_t k, int64_t d, int64_t j) {
    const int64_t depth = depth_of(k), here = std::min(kVisit, depth - d);
    const Cell* const a =
        (ready_a != nullptr ? ready_a + place_of_a(m0, k) : packed_a + place_in_block_of_a(m0, k)) + row_begin * cells_of(depth);
    pairs.take(b.at(j, k + d), std::min(s.nr, columns - j), here);
    each_tile(j, [&](const Tile& t, float* sums_so_far) {
      const int64_t high = padded_rows(t.rows);
      TileOut out{.c = sums_so_far, .stride = t.resume_stride, .columns = t.resume_stride, .rows = high, .finish = false};
      if (k + d > k0) out.resume = t.resume, out.resume_stride = t.resume_stride;
      const Cell* const panel = a + (t.row - m0 - row_begin) * cells_of(depth) + cells_of(d) * high;
      packed_kernel(t.rows, t.columns > kWidth ? 2 : 1)(cells_of(here), panel, pairs.cells, t.resume_stride, out);
    });
  };
  const auto visits = [&](int64_t first, int64_t end) {
    pieces([&](int64_t k) {
      for (int64_t d = 0; d < depth_of(k); d += kVisit)
        for (int64_t j = first; j < end; j += s.nr) visit(k, d, j);
    });
  };
  // In the direction of the streams: rows of B next to each other, or columns one after the other.
  const int64_t together = p.b.row == 1 ? s.nr : columns;
  for (int64_t j = 0; j < columns; j += together) visits(j, std::min(columns, j + together));
  for (int64_t j = 0; j < columns; j += s.nr) {
    each_tile(j, [&](Tile& t, const float*) {
      if (!kOfTiles && sums != nullptr) {
        t.sum = sums + (t.row - m0) * columns_of(n0) + t.column - n0;
        t.sum_stride = columns_of(n0);
      }
      if (p.k == 0) t.resume = nullptr;
      compute(t);
    });
  }
}

}  // namespace st::cpu::ST_ISA
