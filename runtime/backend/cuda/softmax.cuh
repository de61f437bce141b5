// Along an axis: y = e^(x - max) / sum e^(x - max), or y = x - max - log sum e^(x - max), and their gradients dx = y (dy - sum y dy) and
// dx = dy - e^y sum dy. Along the last axis a group of threads has a row, which it reads once, into shared memory. Along another axis
// a thread has a line, so that neighbouring threads read neighbouring elements. Exponentials are computed again where they are needed, so
// that 16 bits need not hold them; sums of a few are in fp32, those of many in fp64.
#pragma once

#include <cmath>
#include <cstdint>

#include <device/threads.h>

#include "backend/cuda/rows.cuh"

namespace st::cuda {

/// A line's numbers that softmax or its logarithm needs: the largest element, and 1 / sum e^(x - max) or log sum e^(x - max).
template <class C>
struct LineSoftmax {
  bool is_log;
  C peak, of_sum;

  DEVICE void set_sum(double sum) { of_sum = static_cast<C>(is_log ? std::log(sum) : 1 / sum); }
  DEVICE C operator()(C x) const { return is_log ? x - peak - of_sum : std::exp(x - peak) * of_sum; }
};

/// The gradient, given the sum of terms over the line.
template <class C>
struct LineGradient {
  bool is_log;
  C sum;

  DEVICE C term(C y, C dy) const { return is_log ? dy : y * dy; }
  DEVICE C operator()(C y, C dy) const { return is_log ? dy - std::exp(y) * sum : y * (dy - sum); }
};

template <class T>
KERNEL(kBlock)
softmax_rows(Group group, bool is_log, const T* x, int64_t rows, int64_t n, T* y) {
  using Row = Rows<T, 8>;
  using C = Compute<T>;
  constexpr int kEach = Row::kEach;
  SHARED(typename Row::Part, held, Row::kShared);
  const int64_t r = group.index();
  if (r >= rows) return;
  const Row row(group, {{x + r * n}}, n, held);
  C peak = -INFINITY;
  row.each([&](int64_t /*at*/, const auto& own, int count) {
    for (int i = 0; i < kEach; ++i)
      if (i < count) peak = Largest{}(peak, own[0][i]);
  });
  LineSoftmax<C> softmax{is_log, row.group.reduced(peak, Largest{}), 0};
  double sum = 0;
  row.each([&](int64_t /*at*/, const auto& own, int count) {
    C terms = 0;
    for (int i = 0; i < kEach; ++i)
      if (i < count) terms += std::exp(own[0][i] - softmax.peak);
    sum += static_cast<double>(terms);
  });
  softmax.set_sum(row.group.reduced(sum, Sum{}));
  row.each([&](int64_t at, const auto& own, int count) {
    C made[kEach];
    for (int i = 0; i < kEach; ++i) made[i] = softmax(own[0][i]);
    store_some(y + r * n + at, made, count);
  });
}

template <class T>
KERNEL(kBlock)
softmax_row_gradients(Group group, bool is_log, const T* y, const T* dy, int64_t rows, int64_t n, T* dx) {
  using Row = Rows<T, 4, 2>;
  using C = Compute<T>;
  constexpr int kEach = Row::kEach;
  SHARED(typename Row::Part, held, Row::kShared);
  const int64_t r = group.index();
  if (r >= rows) return;
  const Row row(group, {{y + r * n, dy + r * n}}, n, held);
  LineGradient<C> gradient{is_log, 0};
  double sum = 0;
  row.each([&](int64_t /*at*/, const auto& own, int count) {
    C terms[kEach];
    for (int i = 0; i < kEach; ++i) terms[i] = gradient.term(own[0][i], own[1][i]);
    sum += sum_of_some(terms, count);
  });
  gradient.sum = static_cast<C>(row.group.reduced(sum, Sum{}));
  row.each([&](int64_t at, const auto& own, int count) {
    C made[kEach];
    for (int i = 0; i < kEach; ++i) made[i] = gradient(own[0][i], own[1][i]);
    store_some(dx + r * n + at, made, count);
  });
}

/// The first element of this thread's line, of n elements that are `inner` apart; none: -1.
DEVICE int64_t line_of_thread(int64_t lines, int64_t n, int64_t inner) {
  const int64_t line = int64_t{block_index()} * kBlock + thread_index();
  return line < lines ? line / inner * n * inner + line % inner : -1;
}
template <class T>
DEVICE Compute<T> read_one(const T* x) {
  return flushed(widen(*x));
}

template <class T>
KERNEL(kBlock)
softmax_lines(bool is_log, const T* x, int64_t lines, int64_t n, int64_t inner, T* y) {
  using C = Compute<T>;
  const int64_t first = line_of_thread(lines, n, inner);
  if (first < 0) return;
  LineSoftmax<C> softmax{is_log, -INFINITY, 0};
  for (int64_t i = 0; i < n; ++i) softmax.peak = Largest{}(softmax.peak, read_one(x + first + i * inner));
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(std::exp(read_one(x + first + i * inner) - softmax.peak));
  softmax.set_sum(sum);
  for (int64_t i = 0; i < n; ++i) store_one(y + first + i * inner, softmax(read_one(x + first + i * inner)));
}

template <class T>
KERNEL(kBlock)
softmax_line_gradients(bool is_log, const T* y, const T* dy, int64_t lines, int64_t n, int64_t inner, T* dx) {
  using C = Compute<T>;
  const int64_t first = line_of_thread(lines, n, inner);
  if (first < 0) return;
  LineGradient<C> gradient{is_log, 0};
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = first + i * inner;
    sum += static_cast<double>(gradient.term(read_one(y + at), read_one(dy + at)));
  }
  gradient.sum = static_cast<C>(sum);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = first + i * inner;
    store_one(dx + at, gradient(read_one(y + at), read_one(dy + at)));
  }
}

}  // namespace st::cuda
