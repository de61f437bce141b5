// Packed panels consist of 32-bit cells. A cell is a float, whatever the operand's type. In a set that multiplies bf16 by bf16 it is a pair
// of bf16, neighbours along K: panels are half as long, and an odd K ends in a pair whose second element is zero.
#pragma once

#include "backend/cpu/gemm/lanes.h"

namespace st::cpu::ST_ISA::micro {

#if defined(ST_BF16_PAIRS)

enum class Cell : uint32_t {};
using Factors = __m512i;  // 16 cells

ST_MICRO Factors load(const Cell* p) { return _mm512_loadu_si512(p); }
ST_MICRO Factors broadcast(Cell x) { return _mm512_set1_epi32(static_cast<int>(x)); }
/// c plus both products of each pair. The instruction treats denormals as zeros and has its own rounding.
ST_MICRO Lanes fma(Factors a, Factors b, Lanes c) {
  return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

#else

using Cell = float;
using Factors = Lanes;

#endif

constexpr bool kPairs = kKernelTile.pairs();
constexpr int64_t kTogether = kKernelTile.together;
constexpr bool kOfTiles = kTogether == 32;
constexpr int64_t cells_of(int64_t k) { return kKernelTile.cells_of(k); }
constexpr int64_t padded_rows(int64_t rows) { return kKernelTile.padded_rows(rows); }

}  // namespace st::cpu::ST_ISA::micro
