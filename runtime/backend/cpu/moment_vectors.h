// Codes of 8-bit moments (backend/moment_codes.h) for a run of elements: the same codes and values as one element at a time.
//
// AVX-512 computes a bin by one multiplication in place of a decade at a time: the exponent of a magnitude, with one comparison where a
// power of ten lies between two powers of two, gives its decade, and the decade a scale and an offset. That result differs from
// moment_codes' only next to the edge of a bin, where rounding decides; a vector with such an element is computed as moment_codes does. A
// value of a code is looked up in registers: gathers and scalar loads take longer.
#pragma once

#include <array>
#include <cstdint>

#include "backend/cpu/simd.h"
#include "backend/moment_codes.h"

namespace st::cpu::ST_ISA {

/// share = x * down * by, limited to [-1, 1].
struct Share {
  float down, by;
  float of(float x) const {  // without std::clamp, whose references prevent vectorisation
    const float share = x * down * by, held = share < -1 ? -1 : share;
    return held > 1 ? 1 : held;
  }
};

#ifdef __AVX512F__

namespace moment_vectors {

inline __m512 share_of(const float* x, const Share& share) {
  const __m512 scaled = _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(share.down)), _mm512_set1_ps(share.by));
  return _mm512_min_ps(_mm512_set1_ps(1), _mm512_max_ps(_mm512_set1_ps(-1), scaled));  // the second operand if one is NaN
}

/// bin_of() for a decade at a time.
inline __m512i exact_bin(__m512 a, int first) {
  const __m512 tenth = _mm512_set1_ps(0.1F), ten = _mm512_set1_ps(10), half = _mm512_set1_ps(0.5F);
  __m512 in_decade = a, bins = _mm512_set1_ps(static_cast<float>(first << 6));
  for (int d = 1; d < moment_codes::kDecades; ++d) {
    const __mmask16 below = _mm512_cmp_ps_mask(in_decade, tenth, _CMP_LE_OQ);
    in_decade = _mm512_mask_mul_ps(in_decade, below, in_decade, ten);
    bins = _mm512_mask_mul_ps(bins, below, bins, half);
  }
  const __m512i one = _mm512_set1_epi32(1), count = _mm512_cvttps_epi32(bins);
  const __m512i wanted = _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_sub_ps(in_decade, tenth), _mm512_mul_ps(bins, _mm512_set1_ps(1 / 0.9F))));
  const __m512i bin = _mm512_min_epi32(_mm512_max_epi32(wanted, _mm512_setzero_si512()), _mm512_sub_epi32(count, one));
  return _mm512_add_epi32(_mm512_add_epi32(count, bin), _mm512_set1_epi32(1 - first));
}

/// Tables of Bins. The index is the last five bits of a biased exponent (2^-28 to 2^3), or the decade (0: from 0.1 to 1).
struct BinTables {
  alignas(64) float edges[32] = {};      // the power of ten at which a decade ends within this exponent's numbers; 0: none
  alignas(64) int32_t decades[32] = {};  // of the numbers above the edge
  alignas(64) float scales[16] = {}, offsets[16] = {};
};

constexpr BinTables tables(int first) {
  BinTables t;
  constexpr double kPowers[moment_codes::kDecades] = {1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6};
  double low = 0x1p-27;
  for (int exponent = -27; exponent < 1; ++exponent, low *= 2) {
    const int i = (exponent + 127) % 32;
    for (int d = 1; d < moment_codes::kDecades; ++d) {
      if (2 * low <= kPowers[d]) t.decades[i] = d;
      if (low <= kPowers[d] && kPowers[d] < 2 * low) t.edges[i] = static_cast<float>(kPowers[d]);
    }
  }
  for (int d = 0; d < moment_codes::kDecades; ++d) {
    const int bins = first << (moment_codes::kDecades - 1 - d);
    t.scales[d] = static_cast<float>(bins / (0.9 * kPowers[d]));
    t.offsets[d] = static_cast<float>(bins - first + 1 - bins / 9.0);
  }
  return t;
}

/// bin_of() for magnitudes in [0, 1], with `first` bins in the lowest decade.
template <int first>
class Bins {
 public:
  /// The lanes outside `needed` may be anything.
  __m512i of(__m512 a, __mmask16 needed) const {
    const __m512 held = _mm512_max_ps(a, _mm512_set1_ps(1e-7F));  // the lowest bin takes what is below it
    const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(held), 23);
    const __mmask16 below = _mm512_cmp_ps_mask(held, _mm512_permutex2var_ps(edges_[0], exponent, edges_[1]), _CMP_LE_OQ);
    __m512i decade = _mm512_permutex2var_epi32(decades_[0], exponent, decades_[1]);
    decade = _mm512_mask_add_epi32(decade, below, decade, _mm512_set1_epi32(1));
    const __m512 place = _mm512_fmadd_ps(held, _mm512_permutexvar_ps(decade, scales_), _mm512_permutexvar_ps(decade, offsets_));
    const __m512 from_edge = _mm512_abs_ps(_mm512_reduce_ps(place, 0));  // of the nearest bin
    if (_mm512_mask_cmp_ps_mask(needed, from_edge, _mm512_set1_ps(kNear), _CMP_LT_OQ) != 0) [[unlikely]]
      return exact_bin(a, first);
    return _mm512_cvttps_epi32(place);
  }

 private:
  static constexpr float kNear = 1e-4F;  // several times what rounding can do to a place, which is below 256

  static constexpr BinTables kTables = tables(first);

  __m512 edges_[2] = {_mm512_load_ps(kTables.edges), _mm512_load_ps(kTables.edges + 16)};
  __m512i decades_[2] = {_mm512_load_si512(kTables.decades), _mm512_load_si512(kTables.decades + 16)};
  __m512 scales_ = _mm512_load_ps(kTables.scales), offsets_ = _mm512_load_ps(kTables.offsets);
};

inline void store_bytes(uint8_t* to, __m512i codes) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(codes)); }

}  // namespace moment_vectors

inline void encode_unsigned(const float* x, int64_t n, const Share& share, uint8_t* to) {
  using namespace moment_vectors;
  constexpr float kNearOne = (moment_codes::kUnsigned[254] + 1) / 2;
  const Bins<2> bins;
  int64_t i = 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>) {
    const __m512 a = share_of(x + i, share);
    const __mmask16 positive = _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_GT_OQ);
    const __mmask16 one = _mm512_cmp_ps_mask(a, _mm512_set1_ps(kNearOne), _CMP_GT_OQ);
    const __m512i code = _mm512_maskz_mov_epi32(positive, bins.of(a, positive & ~one));
    store_bytes(to + i, _mm512_mask_mov_epi32(code, one, _mm512_set1_epi32(255)));
  }
  for (; i < n; ++i) to[i] = moment_codes::encode_unsigned(share.of(x[i]));
}

inline void encode_signed(const float* x, int64_t n, const Share& share, uint8_t* to) {
  using namespace moment_vectors;
  constexpr float kNearOne = (moment_codes::kSigned[254] + 1) / 2, kNearZero = moment_codes::kSigned[128] / 2;
  const Bins<1> bins;
  int64_t i = 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>) {
    const __m512 s = share_of(x + i, share), a = _mm512_abs_ps(s);
    const __mmask16 apart = _mm512_cmp_ps_mask(a, _mm512_set1_ps(kNearZero), _CMP_GT_OQ);
    const __mmask16 last = _mm512_cmp_ps_mask(a, _mm512_set1_ps(0.9999F), _CMP_GT_OQ);  // in the last bin: a block's largest is 1
    const __mmask16 one = _mm512_cmp_ps_mask(s, _mm512_set1_ps(kNearOne), _CMP_GT_OQ);
    __m512i bin = _mm512_mask_mov_epi32(bins.of(a, apart & ~last), last, _mm512_set1_epi32(127));
    bin = _mm512_maskz_mov_epi32(apart, bin);
    bin = _mm512_mask_sub_epi32(bin, _mm512_movepi32_mask(_mm512_castps_si512(s)), _mm512_setzero_si512(), bin);
    const __m512i code = _mm512_add_epi32(bin, _mm512_set1_epi32(127));
    store_bytes(to + i, _mm512_mask_mov_epi32(code, one, _mm512_set1_epi32(255)));
  }
  for (; i < n; ++i) to[i] = moment_codes::encode_signed(share.of(x[i]));
}

/// to[i] = values[codes[i]] * by.
inline void decode(const uint8_t* codes, int64_t n, const std::array<float, 256>& values, float by, float* to) {
  __m512 table[16];
  for (int64_t k = 0; k < 16; ++k) table[k] = _mm512_loadu_ps(values.data() + 16 * k);
  int64_t i = 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>) {
    const __m512i code = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i)));
    __m512 found[8];  // in each 32 values, by the last five bits
    for (int k = 0; k < 8; ++k) found[k] = _mm512_permutex2var_ps(table[2 * k], code, table[2 * k + 1]);
    for (int bit = 5, left = 4; left > 0; ++bit, left /= 2) {
      const __mmask16 upper = _mm512_test_epi32_mask(code, _mm512_set1_epi32(1 << bit));
      for (int k = 0; k < left; ++k) found[k] = _mm512_mask_mov_ps(found[2 * k], upper, found[2 * k + 1]);
    }
    _mm512_storeu_ps(to + i, _mm512_mul_ps(found[0], _mm512_set1_ps(by)));
  }
  for (; i < n; ++i) to[i] = values[codes[i]] * by;
}

#else

inline void encode_unsigned(const float* x, int64_t n, const Share& share, uint8_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = moment_codes::encode_unsigned(share.of(x[i]));
}

inline void encode_signed(const float* x, int64_t n, const Share& share, uint8_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = moment_codes::encode_signed(share.of(x[i]));
}

/// to[i] = values[codes[i]] * by.
inline void decode(const uint8_t* codes, int64_t n, const std::array<float, 256>& values, float by, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = values[codes[i]] * by;
}

#endif

}  // namespace st::cpu::ST_ISA
