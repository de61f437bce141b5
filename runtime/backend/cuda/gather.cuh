// gather: y[o, j, i] = x[o, index[o, j, i], i] around the axis, a thread each.
// gather_backward: dx is cleared; then a thread has a line of dy along the axis and adds its elements to dx in index order, with the cpu's
// bits: no other thread writes its line of dx.
#pragma once

#include <cstdint>

#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/index_faults.cuh"
#include "backend/cuda/indices.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

/// Shapes around the axis: y and dy are [outer, chosen, inner], x and dx [outer, size, inner].
struct GatherLines {
  int64_t outer, chosen, size, inner;

  /// The place in x of an element of y; -1: reported.
  DEVICE int64_t place(const IndexFaults& faults, const Indices& index, int64_t element) const {
    const int64_t row = element / inner, at = index[element];
    if (at >= 0 && at < size) return (row / chosen * size + at) * inner + (element - row * inner);
    report(faults, element, at);
    return -1;
  }
};

template <class Bits>
KERNEL(kBlock)
gather_elements(IndexFaults faults, GatherLines lines, const Bits* x, Indices index, Bits* y, int64_t elements) {
  const int64_t element = int64_t{block_index()} * kBlock + thread_index();
  if (element >= elements) return;
  const int64_t from = lines.place(faults, index, element);
  y[element] = from < 0 ? Bits{} : x[from];
}

template <class T>
KERNEL(kBlock)
add_gathered(IndexFaults faults, GatherLines lines, Indices index, const T* dy, Compute<T>* sums) {
  const int64_t line = int64_t{block_index()} * kBlock + thread_index(), slice = line / lines.inner;
  if (slice >= lines.outer) return;
  for (int64_t j = 0; j < lines.chosen; ++j) {
    const int64_t element = (slice * lines.chosen + j) * lines.inner + (line - slice * lines.inner);
    const int64_t to = lines.place(faults, index, element);
    if (to >= 0) sums[to] = plus(sums[to], widen(dy[element]));
  }
}

}  // namespace st::cuda
