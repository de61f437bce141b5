// Few rows of C: B is read once, in place, some rows at a time over a whole task, while the sums are kept. A sum is the same chain of
// additions as with packed panels, because it continues from the previous rows. For bf16 pairs see pairs_in_place.cpp.
#include <algorithm>
#include <utility>

#include "backend/cpu/gemm/in_place.h"
#include "backend/cpu/gemm/tile_write.h"
#include "base/os/cpu.h"

namespace st::cpu::ST_ISA {

using namespace micro;

namespace {

struct FewRows {
  int64_t rows, columns, depth;  // columns: whole tiles
  int64_t tile;                  // rows of a panel of A
  const float* a;                // packed panels
  const float* b;                // row k at b + k * b_stride
  int64_t b_stride;
  float* sums;  // row r at sums + r * columns
};

/// Vectors of columns that fit the registers next to one of A: independent sums hide the latency of a multiplication.
constexpr int vectors_that_fit(int rows) {
  constexpr int kRegisters = kWidth == 16 ? 32 : 16;
  for (const int vectors : {8, 4})
    if (rows * vectors + vectors + 1 <= kRegisters) return vectors;
  return 2;
}

/// A tile's share of the work: `rows` elements of A per step, columns in V vectors.
struct TileWork {
  int64_t steps;
  const float *a, *b;
  int64_t b_stride;
  float* sums;
  int64_t sums_stride;
  bool first;     // the sums start at zero; their memory is not read
  int64_t ahead;  // floats from a row of B to the row that is prefetched with it
  bool into_l2;   // prefetch into L2, else into L1
};

template <int R, int V>
void add(const TileWork& x) {
  Lanes sums[R][V] = {};
  if (!x.first) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sums[r][v] = load(x.sums + r * x.sums_stride + v * kWidth);
  }
  const float *a = x.a, *b = x.b;
  for (int64_t k = 0; k < x.steps; ++k, a += R, b += x.b_stride) {
    Lanes row[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      if (x.into_l2) {
        __builtin_prefetch(b + x.ahead + v * kWidth, 0, 2);
      } else {
        __builtin_prefetch(b + x.ahead + v * kWidth);
      }
      row[v] = load(b + v * kWidth);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Lanes factor = broadcast(a[r]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sums[r][v] = fma(factor, row[v], sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store(x.sums + r * x.sums_stride + v * kWidth, sums[r][v]);
}

using Add = void (*)(const TileWork& x);

template <size_t... R>
constexpr Add add_for(std::index_sequence<R...>, int64_t rows, bool wide) {
  constexpr Add kTwo[] = {add<static_cast<int>(R) + 1, 2>...};
  constexpr Add kWide[] = {add<static_cast<int>(R) + 1, vectors_that_fit(static_cast<int>(R) + 1)>...};
  return (wide ? kWide : kTwo)[rows - 1];
}

// How many rows of B are read at a time. Rows a multiple of 4 KiB apart share a few lines of L1, so only few rows if each is used just once
// or twice. Zen 4, with a smaller L1 and a fast L2, is faster with a quarter of its L2 at a time.
int64_t visit_from_l1(int64_t rows) {
  constexpr int64_t kUsedOnce = 8, kUsedOften = 64;
  return rows <= kUsedOnce ? 8 : rows <= kUsedOften ? 32 : 64;
}

int64_t visit_from_l2(int64_t columns) {
  constexpr int64_t kQuarter = (1 << 18) / sizeof(float), kLeast = 32;
  return std::max(kLeast, kQuarter / std::max<int64_t>(1, columns));
}

/// The product's sums over all of `depth`.
void sum_few_rows(const FewRows& x) {
  static const bool from_l2 = kWidth == 16 && os::cpu().vendor == "AuthenticAMD";
  const int64_t visit = from_l2 ? visit_from_l2(x.columns) : visit_from_l1(x.rows);
  const int64_t widest = x.rows <= x.tile ? vectors_that_fit(static_cast<int>(x.rows)) * kWidth : kTileColumns;
  for (int64_t k = 0; k < x.depth; k += visit) {
    for (int64_t j = 0, width = widest; j < x.columns; j += width) {
      if (x.columns - j < width) width = kTileColumns;  // whole tiles, too few for a wide step
      for (int64_t i = 0; i < x.rows; i += x.tile) {
        const int64_t rows = std::min(x.tile, x.rows - i);
        add_for(std::make_index_sequence<kTileRows>(), rows, width != kTileColumns)({.steps = std::min(visit, x.depth - k),
                                                                                     .a = x.a + i * x.depth + k * rows,
                                                                                     .b = x.b + k * x.b_stride + j,
                                                                                     .b_stride = x.b_stride,
                                                                                     .sums = x.sums + i * x.columns + j,
                                                                                     .sums_stride = x.columns,
                                                                                     .first = k == 0,
                                                                                     .ahead = i == 0 ? visit * x.b_stride : 0,
                                                                                     .into_l2 = from_l2});
      }
    }
  }
}

}  // namespace

/// Only the partial last panel of B is packed.
void task_in_place(const Product& product, const BlockOrigin& at, const TaskBlock& block, float* waiting) {
  const Panels& panels = product.panels;
  const TileSchedule& s = panels.cut.s;
  const int64_t depth = panels.cut.depth(at.k), sum_stride = panels.cut.columns(at.n), b_stride = panels.cut.p.b.row;
  const int64_t whole = block.columns / s.nr * s.nr;
  const float* const a = panels.of_a(at.m, at.k) + block.row * depth;
  const float* const b = static_cast<const float*>(panels.b) + at.n + block.column + at.k * b_stride;
  sum_few_rows({block.rows, whole, depth, s.mr, a, b, b_stride, waiting});
  for (int64_t j = 0; j < block.columns; j += s.nr) {
    for (int64_t i = 0; i < block.rows; i += s.mr) {
      Tile t{.row = at.m + block.row + i,
             .rows = std::min(s.mr, block.rows - i),
             .column = at.n + block.column + j,
             .columns = s.nr,
             .k = at.k,
             .depth = 0};
      if (product.sums != nullptr) {
        t.sum = product.sums + (block.row + i) * sum_stride + block.column + j;
        t.sum_stride = sum_stride;
      }
      if (j == whole) {
        t.columns = block.columns - whole;
        t.depth = depth;
        t.a = a + i * depth;
        t.b = panels.block_b;
        t.b_stride = panels.cut.width_of(t.columns);
      } else if (depth > 0) {
        t.resume = waiting + i * whole + j;
        t.resume_stride = whole;
      }
      write_tile(product, t);
    }
  }
}

}  // namespace st::cpu::ST_ISA
