// A tensor as lines along one axis. Lines along the last axis are processed as rows of vectors. Others are processed a vector of
// neighbouring lines at a time, one per lane.
#pragma once

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"

namespace st::cpu::ST_ISA {

struct Lines {
  int64_t outer, size, inner;

  Lines(const Shape& shape, int32_t axis)
      : outer(shape.elements(0, axis)), size(shape[axis]), inner(shape.elements(axis + 1, shape.rank())) {}
};

/// If the axis is the last one: row(first element) for each line. Else column(first element, lanes in use) for each vector of lines, whose
/// elements are `inner` apart.
template <class C, class Row, class Column>
void each_line(Workers& workers, const Lines& lines, const Row& row, const Column& column) {
  if (lines.inner == 1) {
    workers.run_range(lines.outer, rows_per_task(lines.size), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) row(r * lines.size);
    });
    return;
  }
  const int64_t vectors = (lines.inner + kLanes<C> - 1) / kLanes<C>;
  workers.run_range(lines.outer * vectors, rows_per_task(lines.size * kLanes<C>), [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      const int64_t from = v % vectors * kLanes<C>;
      column(v / vectors * lines.size * lines.inner + from, std::min(kLanes<C>, lines.inner - from));
    }
  });
}

/// A running sum per lane that carries each step's rounding error (Kahan), so that long columns are as exact as rows.
template <class C>
struct LaneSum {
  Batch<C> sum = Batch<C>(C(0)), lost = sum;
  void add(const Batch<C>& v) {
    const Batch<C> term = v - lost, next = sum + term;
    const Batch<C> dropped = (next - sum) - term;
    lost = xsimd::select(dropped == dropped, dropped, Batch<C>(C(0)));  // an infinite sum stays infinite
    sum = next;
  }
};

}  // namespace st::cpu::ST_ISA
