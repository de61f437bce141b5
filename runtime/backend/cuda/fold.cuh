// sums = terms[0] + terms[1] + .., one after the other; if it adds, sums + terms[0] + ... Sums are fp32 for floats of 32 and 16 bits, fp64
// for fp64, and 64-bit integers, which wrap around, for integers: the cpu's bits (base/combine.h), but for a NaN that an addition makes.
// Sums of 16 bits have the type of their terms, to which each addition in fp32 is rounded. A thread reads kEach elements of each term
// before it writes, so the sums may lie where one of the terms does.
#pragma once

#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

DEVICE float as_sum(float x) { return x; }
DEVICE float as_sum(Bf16 x) { return widen(x); }
DEVICE float as_sum(F16 x) { return widen(x); }
DEVICE double as_sum(double x) { return x; }
DEVICE uint64_t as_sum(int64_t x) { return static_cast<uint64_t>(x); }
DEVICE uint64_t as_sum(int32_t x) { return static_cast<uint64_t>(int64_t{x}); }
DEVICE uint64_t as_sum(uint8_t x) { return x; }

DEVICE uint64_t plus(uint64_t a, uint64_t b) { return a + b; }

template <int kEach, class T>
DEVICE void set_total(Vector<T, kEach>& total, const Vector<T, kEach>& first) {
  total = first;
}
template <int kEach, class Sum, class T>
DEVICE void set_total(Vector<Sum, kEach>& total, const Vector<T, kEach>& first) {
  for (int i = 0; i < kEach; ++i) total.at[i] = as_sum(first.at[i]);
}

/// Numbers of 16 bits, each sum rounded, in pairs.
template <int kEach, class Sum, class T>
DEVICE void add_term(Vector<Sum, kEach>& total, const Vector<T, kEach>& next) {
  if constexpr (sizeof(Sum) > 2) {
    for (int i = 0; i < kEach; ++i) total.at[i] = plus(total.at[i], as_sum(next.at[i]));
  } else if constexpr (kEach == 1) {
    Sum pair[2];
    narrow_pair(pair, plus(widen(total.at[0]), widen(next.at[0])), 0.0F);
    total.at[0] = pair[0];
  } else {
    for (int i = 0; i < kEach; i += 2)
      narrow_pair(total.at + i, plus(widen(total.at[i]), widen(next.at[i])), plus(widen(total.at[i + 1]), widen(next.at[i + 1])));
  }
}

/// kEach elements from `at` on; addresses are aligned to the vectors.
template <int kEach, class Sum, class T, int kMost>
DEVICE void fold_at(Sum* sums, const Pointers<const T, kMost>& terms, int count, bool adds, int64_t at) {
  Vector<Sum, kEach> total;
  int term = 0;
  if (adds)
    total = load_vector<Vector<Sum, kEach>>(sums + at);
  else
    set_total(total, load_vector<Vector<T, kEach>>(terms.at[term++] + at));
  for (; term < count; ++term) add_term(total, load_vector<Vector<T, kEach>>(terms.at[term] + at));
  store_vector(sums + at, total);
}

template <int kEach, class Sum, class T, int kMost>
KERNEL(kBlock)
fold_terms(Sum* sums, Pointers<const T, kMost> terms, int count, bool adds, int64_t elements) {
  const int64_t first = (int64_t{block_index()} * kBlock + thread_index()) * kEach;
  if (first + kEach <= elements) return fold_at<kEach>(sums, terms, count, adds, first);
  for (int64_t i = first; i < elements; ++i) fold_at<1>(sums, terms, count, adds, i);
}

}  // namespace st::cuda
