// Packed panels consist of 32-bit cells. A cell is a float, whatever the operand's type. In a set that multiplies bf16 by bf16 it is a pair
// of bf16, neighbours along K: panels are half as long, and an odd K ends in a pair whose second element is zero.
#pragma once

#include "backend/cpu/gemm/lanes.h"

namespace st::cpu::ST_ISA::micro {

#if defined(ST_BF16_PAIRS)

enum class Cell : uint32_t {};
using Factors = __m512i;  // 16 cells
constexpr bool kPairs = true;
#if defined(ST_BF16_TILES)
constexpr int64_t kTogether = 32, kRowsTogether = 16;  // padding at the end of a K block, and of the last rows of A
#else
constexpr int64_t kTogether = 2, kRowsTogether = 1;
#endif

ST_MICRO Factors load(const Cell* p) { return _mm512_loadu_si512(p); }
ST_MICRO Factors broadcast(Cell x) { return _mm512_set1_epi32(static_cast<int>(x)); }
/// c plus both products of each pair. The instruction treats denormals as zeros and has its own rounding.
ST_MICRO Lanes fma(Factors a, Factors b, Lanes c) {
  return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

#else

using Cell = float;
using Factors = Lanes;
constexpr bool kPairs = false;
constexpr int64_t kTogether = 1, kRowsTogether = 1;

#endif

constexpr bool kOfTiles = kTogether == 32;

/// Cells for k elements along K, in one row or column of a panel.
constexpr int64_t cells_of(int64_t k) { return kPairs ? (k + kTogether - 1) / kTogether * (kTogether / 2) : k; }

/// Rows that `rows` rows of A take in panels.
constexpr int64_t padded_rows(int64_t rows) { return (rows + kRowsTogether - 1) / kRowsTogether * kRowsTogether; }

}  // namespace st::cpu::ST_ISA::micro
