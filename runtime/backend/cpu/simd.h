// Vectors of this instruction set and rules shared by all kernels: task sizes, masked tails, sums in a fixed order.
// A tail uses the same vector operations as the body, on a padded register image, so an element's bits do not depend on its position. Work
// is cut by problem size only, so they do not depend on the number of threads either.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <xsimd/xsimd.hpp>

#include "backend/cpu/grain.h"

namespace st::cpu::ST_ISA {

template <class T>
using Batch = xsimd::batch<T>;
using F32 = Batch<float>;
using F64 = Batch<double>;

template <class T>
constexpr int64_t kLanes = static_cast<int64_t>(Batch<T>::size);

constexpr int64_t kSumBlock = 1024;  // elements added in float lanes before the sum continues in double

/// Rows per task when a row has `columns` elements.
inline int64_t rows_per_task(int64_t columns) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, columns)); }

template <class T>
requires std::is_arithmetic_v<T> Batch<T> load(const T* p) { return Batch<T>::load_unaligned(p); }
template <class T>
requires std::is_arithmetic_v<T>
void store(T* p, const Batch<T>& v) { v.store_unaligned(p); }
/// The first n < kLanes elements; the rest is filled.
template <class T>
requires std::is_arithmetic_v<T> Batch<T> load_tail(const T* p, int64_t n, T fill = T(0)) {
  alignas(64) T image[Batch<T>::size];
  for (int64_t i = 0; i < kLanes<T>; ++i) image[i] = fill;
  std::memcpy(image, p, static_cast<size_t>(n) * sizeof(T));
  return Batch<T>::load_aligned(image);
}
template <class T>
requires std::is_arithmetic_v<T>
void store_tail(T* p, const Batch<T>& v, int64_t n) {
  alignas(64) T image[Batch<T>::size];
  v.store_aligned(image);
  std::memcpy(p, image, static_cast<size_t>(n) * sizeof(T));
}

/// x * y + z, rounded once if the instruction set can.
inline F32 fma(const F32& x, const F32& y, const F32& z) {
#ifdef __AVX512F__
  return _mm512_fmadd_ps(x, y, z);  // xsimd 8.1 lacks it for AVX-512
#else
  return xsimd::fma(x, y, z);
#endif
}
inline F64 fma(const F64& x, const F64& y, const F64& z) {
#ifdef __AVX512F__
  return _mm512_fmadd_pd(x, y, z);
#else
  return xsimd::fma(x, y, z);
#endif
}

/// The sum of the lanes by halving: lane i + lane i + n/2, and so on.
template <class T>
T add_lanes(const Batch<T>& v) {
#ifdef __AVX2__
  if constexpr (std::is_same_v<T, float>) {
#ifdef __AVX512F__
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
#else
    const __m256 eight = v;
#endif
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
#endif
  alignas(64) T image[Batch<T>::size];
  v.store_aligned(image);
  for (int64_t width = kLanes<T> / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) image[i] += image[i + width];
  }
  return image[0];
}
template <class T>
T max_lanes(const Batch<T>& v) {
  alignas(64) T image[Batch<T>::size];
  v.store_aligned(image);
  T best = image[0];
  for (int64_t i = 1; i < kLanes<T>; ++i) best = image[i] > best ? image[i] : best;
  return best;
}

/// K sums over i < n at once. term(i, count) returns K vectors of the elements from i on, of which `count` exist and the others are 0;
/// term(i, count, sums) adds them itself. Four vector accumulators within a block of kSumBlock elements; blocks are added in double, in
/// order. A term that captures by value ([=]) stays in registers; references are read again after each store.
template <class C, size_t K, class Term>
std::array<double, K> sum_blocks(int64_t n, Term term) {
  constexpr int64_t L = kLanes<C>;
  using Sums = std::array<Batch<C>, K>;
  std::array<double, K> total{};
  const auto add = [&](Sums& into, int64_t i, int64_t count) {
    if constexpr (std::is_invocable_v<Term, int64_t, int64_t, Sums&>) {
      term(i, count, into);
    } else {
      const Sums v = term(i, count);
      for (size_t k = 0; k < K; ++k) into[k] += v[k];
    }
  };
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t end = std::min(n, begin + kSumBlock);
    Sums a, b, c, d;
    for (size_t k = 0; k < K; ++k) a[k] = b[k] = c[k] = d[k] = Batch<C>(C(0));
    int64_t i = begin;
    for (; i + 4 * L <= end; i += 4 * L) {
      add(a, i, L);
      add(b, i + L, L);
      add(c, i + 2 * L, L);
      add(d, i + 3 * L, L);
    }
    for (; i + L <= end; i += L) add(a, i, L);
    if (i < end) add(b, i, end - i);
#pragma GCC unroll 2
    for (size_t k = 0; k < K; ++k) total[k] += static_cast<double>(add_lanes<C>((a[k] + b[k]) + (c[k] + d[k])));
  }
  return total;
}

}  // namespace st::cpu::ST_ISA
