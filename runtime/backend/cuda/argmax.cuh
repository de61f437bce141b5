// Index of the first largest element along an axis; NaN is larger than anything, so the first NaN wins. Along the last axis a group of
// threads has a row: each thread has its own first largest, and the smallest index of those that equal the row's largest is the result.
// Along another axis a thread has a line.
#pragma once

#include <cmath>
#include <cstdint>

#include <device/threads.h>

#include "backend/cuda/rows.cuh"

namespace st::cuda {

struct Smallest {
  DEVICE int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

/// Elements come in the order of their indices.
template <class C>
struct FirstLargest {
  static constexpr int64_t kNone = INT64_MAX;
  C best = -INFINITY;
  int64_t index = kNone;

  DEVICE void take(C x, int64_t at) {
    if (!(x > best) && !(x != x && best == best) && index != kNone) return;
    best = x;
    index = at;
  }
};

template <class T>
KERNEL(kBlock)
argmax_rows(Group group, const T* x, int64_t rows, int64_t n, int32_t* y) {
  using C = Compute<T>;
  constexpr int kEach = kOfVector<T>;
  const int64_t r = group.index();
  if (r >= rows) return;
  FirstLargest<C> own;
  for (int64_t at = int64_t{group.thread()} * kEach; at < n; at += group.threads * kEach) {
    const int count = n - at < kEach ? static_cast<int>(n - at) : kEach;
    C read[kEach];
    read_some(read, x + r * n + at, count);
    for (int i = 0; i < kEach; ++i)
      if (i < count) own.take(read[i], at + i);
  }
  const C best = group.reduced(own.best, Largest{});
  const bool is_best = own.best == best || (own.best != own.best && best != best);
  const int64_t first = group.reduced(is_best ? own.index : FirstLargest<C>::kNone, Smallest{});
  if (group.thread() == 0) y[r] = static_cast<int32_t>(first);
}

template <class T>
KERNEL(kBlock)
argmax_lines(const T* x, int64_t lines, int64_t n, int64_t inner, int32_t* y) {
  const int64_t line = int64_t{block_index()} * kBlock + thread_index();
  if (line >= lines) return;
  const T* const from = x + line / inner * n * inner + line % inner;
  FirstLargest<Compute<T>> largest;
  for (int64_t i = 0; i < n; ++i) largest.take(flushed(widen(from[i * inner])), i);
  y[line] = static_cast<int32_t>(largest.index);
}

}  // namespace st::cuda
