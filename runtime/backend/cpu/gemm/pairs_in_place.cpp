// Few rows of C with products of pairs: B is read once, in place. Its rows (or columns) are read as streams, 32 elements of K at a time; 32
// columns at a time are turned into pairs in L1 and multiplied by all rows, while the sums are kept. A sum is the same chain of additions
// as with packed panels, because it continues from the previous elements.
#include <algorithm>

#include "backend/cpu/gemm/in_place.h"
#include "backend/cpu/gemm/micro.h"
#include "backend/cpu/gemm/set_kernels.h"
#include "backend/cpu/gemm/tile_write.h"

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

void task_in_place(const Product& product, const BlockOrigin& at, const TaskBlock& block, float* waiting) {
  const Panels& panels = product.panels;
  const Blocking& cut = panels.cut;
  const GemmProblem& p = cut.p;
  const int64_t mr = cut.s.mr, nr = cut.s.nr, across = round_up(block.columns, nr);
  const PanelSource<bf16> b = PanelSource<bf16>{static_cast<const bf16*>(panels.b), p.b.column, p.b.row}.at(at.n + block.column, 0);
  const TileRegisters registers(block.rows);
  const auto each_k_block = [&](const auto& body) {
    if constexpr (kOfTiles) {
      cut.each_k_block(at.k, body);
    } else {
      body(at.k);
    }
  };
  int64_t last = at.k;
  each_k_block([&](int64_t k) { last = k; });
  /// body(tile, sums) for the tiles of a few columns; sums have the kernel's layout.
  const auto each_tile = [&](int64_t j, const auto& body) {
    for (int64_t i = 0; i < block.rows; i += mr) {
      Tile t{.row = at.m + block.row + i,
             .rows = std::min(mr, block.rows - i),
             .column = at.n + block.column + j,
             .columns = std::min(nr, block.columns - j),
             .k = last};
      float* const sums = waiting + i * across + j * padded_rows(t.rows);
      t.resume = sums;
      t.resume_stride = cut.width_of(t.columns);
      body(t, sums);
    }
  };
  Pairs pairs;
  const auto visit = [&](int64_t k, int64_t d, int64_t j) {
    const int64_t depth = cut.depth(k), here = std::min(kVisit, depth - d);
    const Cell* const a = panels.of_a(at.m, k) + block.row * cells_of(depth);
    pairs.take(b.at(j, k + d), std::min(nr, block.columns - j), here);
    each_tile(j, [&](const Tile& t, float* sums_so_far) {
      const int64_t high = padded_rows(t.rows);
      TileOut out{.c = sums_so_far, .stride = t.resume_stride, .columns = t.resume_stride, .rows = high, .finish = false};
      if (k + d > at.k) out.resume = t.resume, out.resume_stride = t.resume_stride;
      const Cell* const panel = a + (t.row - at.m - block.row) * cells_of(depth) + cells_of(d) * high;
      packed_kernel(t.rows, t.columns > kWidth ? 2 : 1)(cells_of(here), panel, pairs.cells, t.resume_stride, out);
    });
  };
  const auto visits = [&](int64_t first, int64_t end) {
    each_k_block([&](int64_t k) {
      for (int64_t d = 0; d < cut.depth(k); d += kVisit)
        for (int64_t j = first; j < end; j += nr) visit(k, d, j);
    });
  };
  // In the direction of the streams: rows of B next to each other, or columns one after the other.
  const int64_t together = p.b.row == 1 ? nr : block.columns;
  for (int64_t j = 0; j < block.columns; j += together) visits(j, std::min(block.columns, j + together));
  for (int64_t j = 0; j < block.columns; j += nr) {
    each_tile(j, [&](Tile& t, const float*) {
      if (!kOfTiles && product.sums != nullptr) {
        t.sum = product.sums + (t.row - at.m) * cut.columns(at.n) + t.column - at.n;
        t.sum_stride = cut.columns(at.n);
      }
      if (p.k == 0) t.resume = nullptr;
      write_tile(product, t);
    });
  }
}

}  // namespace st::cpu::ST_ISA
