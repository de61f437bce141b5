#include "backend/cpu/gemm/panels.h"

#include "backend/cpu/gemm/element.h"
#include "backend/cpu/gemm/pack.h"
#include "backend/cpu/gemm/set_kernels.h"

namespace st::cpu::ST_ISA {

using namespace micro;

namespace {

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

void Panels::pack_rows_of_a(int64_t m, int64_t k, int64_t first, int64_t last, Cell* to) const {
  with_operand(cut.p.a_type, [&](auto element) {
    using T = decltype(element);
    const PanelSource<T> from = PanelSource<T>{static_cast<const T*>(a), cut.p.a.row, cut.p.a.column}.at(m, k);
    const int64_t rows = cut.rows(m), depth = cut.depth(k), mr = cut.s.mr;
    if constexpr (kOfTiles) {
      for (int64_t i = first * mr; i < std::min(rows, last * mr); i += mr) {
        const int64_t valid = std::min(mr, rows - i);
        pack_tiles(from.at(i, 0), valid, padded_rows(valid), depth, to + i * cells_of(depth));
      }
    } else {
      pack_panels(from, first, last, rows, mr, rows % mr, depth, to);
    }
  });
}

void Panels::pack_columns_of_b(int64_t n, int64_t k, int64_t first, int64_t last, Cell* to) const {
  with_operand(cut.p.b_type, [&](auto element) {
    using T = decltype(element);
    const PanelSource<T> from{static_cast<const T*>(b), cut.p.b.column, cut.p.b.row};
    const int64_t columns = cut.columns(n), nr = cut.s.nr;
    pack_panels(from.at(n, k), first, last, columns, nr, cut.width_of(columns % nr), cut.depth(k), to);
  });
}

void Panels::pack_all_a(Cell* to, Workers& workers) const {
  for (int64_t m = 0; m < cut.p.m; m += cut.s.block_m) {
    for (int64_t k = 0; k < cut.p.k; k += cut.s.kc) {
      workers.run_range(ceil_div(cut.rows(m), cut.s.mr), kPanelsPerPackTask,
                        [&](int64_t first, int64_t last) { pack_rows_of_a(m, k, first, last, to + cut.in_packed_a(m, k)); });
    }
  }
}

void Panels::pack_all_b(Cell* to, Workers& workers) const {
  for (int64_t n = 0; n < cut.p.n; n += cut.s.block_n) {
    for (int64_t k = 0; k < cut.p.k; k += cut.s.kc) {
      workers.run_range(ceil_div(cut.columns(n), cut.s.nr), kPanelsPerPackTask,
                        [&](int64_t first, int64_t last) { pack_columns_of_b(n, k, first, last, to + cut.in_packed_b(n, k)); });
    }
  }
}

}  // namespace st::cpu::ST_ISA
