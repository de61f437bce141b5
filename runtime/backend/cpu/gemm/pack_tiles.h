// A's panels as tiles: for every 32 elements of K, 16 or 32 rows of 16 pairs, one after the other. B's are in pack_pairs.h.
#pragma once

#include "backend/cpu/gemm/pack_pairs.h"

namespace st::cpu::ST_ISA::micro {

/// Packs `valid` <= width rows; elements beyond them, and beyond k, become zero. width is a multiple of 16.
inline void pack_tiles(const PanelSource<bf16>& from, int64_t valid, int64_t width, int64_t k, Cell* to) {
  constexpr int64_t kDepth = 2 * kWidth;  // elements of K in a tile
  for (int64_t d = 0; d < k; d += kDepth, to += width * kWidth) {
    for (int64_t j = 0; j < width; j += kWidth) {
      const PanelSource<bf16> tile = from.at(j, d);
      const int64_t rows = std::clamp<int64_t>(valid - j, 0, kWidth), depth = std::min(kDepth, k - d);
      Cell* at = to + j * kWidth;
      if (from.k_stride == 1) {
        for (int64_t r = 0; r < rows; ++r)
          _mm512_storeu_si512(at + r * kWidth, _mm512_maskz_loadu_epi16(detail::first_of_32(depth), tile.data + r * tile.across_stride));
        for (int64_t r = rows; r < kWidth; ++r) _mm512_storeu_si512(at + r * kWidth, _mm512_setzero_si512());
        continue;
      }
      alignas(64) Cell pairs[kWidth * kWidth] = {};  // [pair][row]
      pack_panel(tile, rows, kWidth, depth, pairs);
      Lanes block[kWidth];
      for (int64_t c = 0; c < kWidth; ++c) block[c] = _mm512_loadu_ps(pairs + c * kWidth);
      detail::transpose(block);
      for (int64_t r = 0; r < kWidth; ++r) _mm512_storeu_ps(at + r * kWidth, block[r]);
    }
  }
}

}  // namespace st::cpu::ST_ISA::micro
