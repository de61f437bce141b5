// pack.h for bf16 pairs, without widening: all of a panel's pairs for k = 0 and 1, then for k = 2 and 3, ... For tile kernels 16 x 16 pairs
// are contiguous.
#pragma once

#include <array>

#include "backend/cpu/gemm/cells.h"
#include "backend/cpu/gemm/pack.h"

namespace st::cpu::ST_ISA::micro {

namespace detail {

ST_MICRO __mmask16 first_of_16(int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xFFFF : (1U << n) - 1); }
ST_MICRO __mmask32 first_of_32(int64_t n) { return n >= 32 ? 0xFFFFFFFF : (1U << n) - 1; }

/// Position of pair c and element j across, a multiple of 16.
ST_MICRO int64_t place_of_pairs(int64_t c, int64_t j, int64_t width) {
  if (kTogether == 2) return c * width + j;
  return c / kWidth * (kWidth * width) + j * kWidth + c % kWidth * kWidth;
}

/// Index of word i: from the first vector if i is even, from the second if odd, both starting at word `first`.
constexpr std::array<int16_t, 32> alternating(int first) {
  std::array<int16_t, 32> words{};
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<int16_t>(static_cast<size_t>(first) + i / 2 + i % 2 * 32);
  return words;
}

/// Rows k and k + 1 of an operand, which one bf16 instruction consumes as a pair; null beyond the end of K.
struct RowPair {
  const bf16 *even, *odd;

  RowPair(const PanelSource<bf16>& from, int64_t c, int64_t k)
      : even(2 * c < k ? from.data + 2 * c * from.k_stride : nullptr),
        odd(2 * c + 1 < k ? from.data + (2 * c + 1) * from.k_stride : nullptr) {}

  /// 16 adjacent pairs.
  ST_MICRO __m512i at(int64_t j, int64_t valid) const {
    const __mmask16 mask = first_of_16(valid);
    if (even == nullptr) return _mm512_setzero_si512();
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, even + j));
    if (odd == nullptr) return low;
    return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, odd + j)), 16));
  }

  /// Pair c of a panel: `valid` pairs from element `first` on, and zeros up to `width`.
  ST_MICRO void pack(int64_t first, int64_t valid, int64_t width, int64_t c, Cell* panel) const {
    for (int64_t j = 0; j < width; j += kWidth) {
      _mm512_mask_storeu_epi32(panel + place_of_pairs(c, j, width), first_of_16(width - j),
                               j < valid ? at(first + j, valid - j) : _mm512_setzero_si512());
    }
  }
};

/// Pairs that are contiguous in memory: 16 rows of 16 pairs at a time, transposed in registers.
inline void pack_pair_columns(const PanelSource<bf16>& from, int64_t valid, int64_t width, int64_t k, Cell* to) {
  const int64_t cells = cells_of(k);
  for (int64_t j = 0; j < width; j += kWidth) {
    for (int64_t c = 0; c < cells; c += kWidth) {
      Lanes rows[kWidth];
      for (int64_t r = 0; r < kWidth; ++r) {
        const bf16* row = from.data + (j + r) * from.across_stride + 2 * c;
        rows[r] =
            j + r < valid ? _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(first_of_32(std::max<int64_t>(k - 2 * c, 0)), row)) : Lanes{};
      }
      transpose(rows);
      const int64_t here = std::min<int64_t>(kWidth, cells - c);
      for (int64_t r = 0; r < here; ++r) _mm512_mask_storeu_ps(to + place_of_pairs(c + r, j, width), first_of_16(width - j), rows[r]);
    }
  }
}

}  // namespace detail

/// Up to 16 pairs of rows, 32 columns each. Few instructions, so that many loads are in flight.
ST_MICRO void pack_pairs_32(const PanelSource<bf16>& from, int64_t pairs, Cell* to) {
  alignas(64) static constexpr auto kLow = detail::alternating(0), kHigh = detail::alternating(16);
  constexpr int64_t kStep = kTogether == 2 ? 2 * kWidth : kWidth, kOther = kTogether == 2 ? kWidth : kWidth * kWidth;
  const __m512i low = _mm512_load_si512(kLow.data()), high = _mm512_load_si512(kHigh.data());
  const bf16* row = from.data;
#pragma GCC unroll 4
  for (int64_t c = 0; c < pairs; ++c, row += 2 * from.k_stride, to += kStep) {
    const __m512i a = _mm512_loadu_si512(row), b = _mm512_loadu_si512(row + from.k_stride);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, low, b));
    _mm512_storeu_si512(to + kOther, _mm512_permutex2var_epi16(a, high, b));
  }
}

inline void pack_side_by_side(const PanelSource<bf16>& from, int64_t panels, int64_t width, int64_t k, int64_t panel_size, Cell* to) {
  // 16 pairs of rows at a time, panel by panel: each row is a stream that the hardware prefetches better than software would.
  for (int64_t c = 0; c < cells_of(k); c += kWidth) {
    const int64_t whole = std::min<int64_t>(kWidth, k / 2 - c), here = std::min<int64_t>(kWidth, cells_of(k) - c);
    for (int64_t p = 0; p < panels; ++p) {
      int64_t done = 0;
      if (width == 32 && whole > 0) {
        pack_pairs_32(from.at(p * width, 2 * c), whole, to + p * panel_size + c * width);
        done = whole;
      }
      for (; done < here; ++done) detail::RowPair(from, c + done, k).pack(p * width, width, width, c + done, to + p * panel_size);
    }
  }
}

[[gnu::noinline]] inline void pack_panel(const PanelSource<bf16>& from, int64_t valid, int64_t width, int64_t k, Cell* to) {
  if (from.k_stride == 1) return detail::pack_pair_columns(from, valid, width, k, to);
  if (from.across_stride == 1 && valid == width) return pack_side_by_side(from, 1, width, k, 0, to);
  for (int64_t c = 0; c < cells_of(k); ++c) {
    const detail::RowPair rows(from, c, k);
    if (from.across_stride == 1) {
      rows.pack(0, valid, width, c, to);
      continue;
    }
    const auto element = [&](const bf16* row, int64_t j) {
      return j < valid && row != nullptr ? uint32_t{row[j * from.across_stride].bits} : 0U;
    };
    for (int64_t j = 0; j < width; ++j)
      to[detail::place_of_pairs(c, j / kWidth * kWidth, width) + j % kWidth] =
          static_cast<Cell>(element(rows.even, j) | element(rows.odd, j) << 16);
  }
}

}  // namespace st::cpu::ST_ISA::micro
