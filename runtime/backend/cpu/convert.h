// Conversion between storage and compute types. Kernels load bf16 and f16 into float vectors and round on store.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "backend/cpu/simd.h"
#include "backend/kernel_side.h"
#include "base/error.h"
#include "base/float16.h"
#include "base/narrowing.h"

namespace st::cpu::ST_ISA {

struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, bf16> || std::is_same_v<T, f16>;
template <class T>
constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, double> || kIsHalf<T>;

/// The type in which T is computed.
template <class T>
using Compute = std::conditional_t<kIsHalf<T>, float, T>;

inline float widen(bf16 x) { return f32_of_bf16(x.bits); }
inline float widen(f16 x) { return f32_of_f16(x.bits); }
template <class T>
T widen(T x) {
  return x;
}

/// From a compute type; rounds to nearest even.
template <class T>
T narrow(Compute<T> x) {
  if constexpr (std::is_same_v<T, bf16>) {
    return {bf16_of(x)};
  } else if constexpr (std::is_same_v<T, f16>) {
    return {f16_of(x)};
  } else {
    return x;
  }
}

// Vectors of 16-bit storage, computed in float.
inline F32 load(const bf16* p) {
#ifdef __AVX512F__
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
#elif defined(__AVX2__)
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
#else
  alignas(64) float image[F32::size];
  for (size_t i = 0; i < F32::size; ++i) image[i] = widen(p[i]);
  return F32::load_aligned(image);
#endif
}
inline F32 load(const f16* p) {
#ifdef __AVX512F__
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  alignas(64) float image[F32::size];
  for (size_t i = 0; i < F32::size; ++i) image[i] = widen(p[i]);
  return F32::load_aligned(image);
#endif
}
template <class T>
requires kIsHalf<T>
void store(T* p, const F32& v) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, bf16>) {  // bf16_of(), 16 at a time
    const __m512i bits = _mm512_castps_si512(v), high = _mm512_srli_epi32(bits, 16);
    const __m512i to_even = _mm512_add_epi32(_mm512_and_si512(high, _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7FFF));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, to_even), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i words = _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(words));
    return;
  }
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, bf16>) {  // the same, 8 at a time
    const __m256i bits = _mm256_castps_si256(v), high = _mm256_srli_epi32(bits, 16);
    const __m256i to_even = _mm256_add_epi32(_mm256_and_si256(high, _mm256_set1_epi32(1)), _mm256_set1_epi32(0x7FFF));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, to_even), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i words = _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);  // packus works within 128-bit halves
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
    return;
  }
#endif
  alignas(64) float image[F32::size];
  v.store_aligned(image);
#ifdef __F16C__
  if constexpr (std::is_same_v<T, f16>) {
    for (size_t i = 0; i < F32::size; i += 8) {
      const __m128i half = _mm256_cvtps_ph(_mm256_load_ps(image + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p + i), half);
    }
    return;
  }
#endif
  for (size_t i = 0; i < F32::size; ++i) p[i] = narrow<T>(image[i]);
}
template <class T>
requires kIsHalf<T> F32 load_tail(const T* p, int64_t n, float fill = 0) {
  alignas(64) float image[F32::size];
  for (int64_t i = 0; i < kLanes<float>; ++i) image[i] = i < n ? widen(p[i]) : fill;
  return F32::load_aligned(image);
}
template <class T>
requires kIsHalf<T>
void store_tail(T* p, const F32& v, int64_t n) {
  alignas(64) float image[F32::size];
  v.store_aligned(image);
  for (int64_t i = 0; i < n; ++i) p[i] = narrow<T>(image[i]);
}

/// Loads `count` elements and fills the rest; with count == kLanes known at compile time it is a plain load.
template <class T>
Batch<Compute<T>> load_part(const T* p, int64_t count, Compute<T> fill = 0) {
  return count == kLanes<Compute<T>> ? load(p) : load_tail(p, count, fill);
}
template <class T>
void store_part(T* p, const Batch<Compute<T>>& v, int64_t count) {
  if (count == kLanes<Compute<T>>) {
    store(p, v);
  } else {
    store_tail(p, v, count);
  }
}

/// body(i, count) for each vector of n elements; the last may be partial.
template <class C, class Body>
void each_vector(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes<C> <= n; i += kLanes<C>) body(i, kLanes<C>);
  if (i < n) body(i, n - i);
}

/// Element by element in double, for sums that overflow float lanes.
template <class T>
[[gnu::noinline]] double sum_in_double(const T* x, int64_t n, int64_t step = 1) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(widen(x[i * step]));
  return sum;
}

template <class T>
double sum_of(const T* x, int64_t n) {
  using C = Compute<T>;
  const double sum = sum_blocks<C, 1>(n, [&](int64_t i, int64_t count) { return std::array{load_part(x + i, count)}; })[0];
  return std::isfinite(sum) ? sum : sum_in_double(x, n);
}

template <class C>
xsimd::batch_bool<C> either_is_nan(const Batch<C>& a, const Batch<C>& b) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<C, float>) return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
#endif
  return xsimd::isnan(a) | xsimd::isnan(b);
}

/// The largest element; NaN if there is one.
template <class T>
[[gnu::noinline]] Compute<T> max_of(const T* x, int64_t n) {
  using C = Compute<T>;
  constexpr C lowest = -std::numeric_limits<C>::infinity();
  constexpr int64_t L = kLanes<C>;
  Batch<C> best(lowest), others[3] = {best, best, best};  // four chains: a comparison takes longer than a load
  auto nan = either_is_nan(best, best);
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    const Batch<C> a = load(x + i), b = load(x + i + L), c = load(x + i + 2 * L), d = load(x + i + 3 * L);
    nan = nan | either_is_nan(a, b) | either_is_nan(c, d);
    best = xsimd::max(a, best);  // if either is NaN, returns the second operand
    others[0] = xsimd::max(b, others[0]);
    others[1] = xsimd::max(c, others[1]);
    others[2] = xsimd::max(d, others[2]);
  }
  each_vector<C>(n - i, [&](int64_t at, int64_t count) {
    const Batch<C> v = load_part(x + i + at, count, lowest);
    nan = nan | either_is_nan(v, v);
    best = xsimd::max(v, best);
  });
  for (const Batch<C>& other : others) best = xsimd::max(other, best);
  return xsimd::any(nan) ? std::numeric_limits<C>::quiet_NaN() : max_lanes<C>(best);
}

/// Calls body(T{}) with the storage type of `dtype`.
template <class Body>
void with_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32:
      return body(float{});
    case DType::f64:
      return body(double{});
    case DType::bf16:
      return body(bf16{});
    case DType::f16:
      return body(f16{});
    case DType::i32:
      return body(int32_t{});
    case DType::i64:
      return body(int64_t{});
    case DType::u8:
      return body(uint8_t{});
    case DType::boolean:
      return body(bool{});
  }
}

/// Whether this set computes in double: only the portable set does, for all sets (table.cpp).
constexpr bool kComputesDouble = std::string_view(ST_ISA_NAME) == "portable";
template <class T>
constexpr bool kIsComputed = kComputesDouble || !std::is_same_v<T, double>;

/// with_type() for the types that this set computes.
template <class Body>
void with_computed_type(DType dtype, Body&& body) {
  with_type(dtype, [&](auto t) {
    if constexpr (kIsComputed<decltype(t)>) {
      body(t);
    } else {
      fail(Code::internal, "cpu: f64 kernels exist in the portable set only");
    }
  });
}

template <class Body>
void with_float(std::string_view op, DType dtype, Body&& body) {
  with_computed_type(dtype, [&](auto t) {
    if constexpr (kIsFloat<decltype(t)>) {
      body(t);
    } else {
      fail(Code::unsupported, text(op, ": the cpu backend computes floating point only, got ", dtype, "; cast first"));
    }
  });
}

}  // namespace st::cpu::ST_ISA
