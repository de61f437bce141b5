// Stores floats of a finished tile as bf16, 32 at a time.
#pragma once

#include <array>

#include "backend/cpu/convert.h"
#include "backend/cpu/gemm/lanes.h"

namespace st::cpu::ST_ISA::micro {

/// 16 floats rounded as by bf16_of(); each result is in the upper half of its lane.
ST_MICRO __m512i rounded_up_halves(Lanes x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i to_even = _mm512_add_epi32(_mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7FFF));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(_mm512_add_epi32(bits, to_even), nan, bits, _mm512_set1_epi32(0x400000));
}

/// 32 elements in one store: a tile product is so fast that the cost of rounding would be visible.
ST_MICRO void store_bf16(Lanes low, Lanes high, bf16* to) {
  alignas(64) static constexpr auto kUpper = [] {
    std::array<int16_t, 32> odd{};
    for (size_t i = 0; i < odd.size(); ++i) odd[i] = static_cast<int16_t>(2 * i + 1);
    return odd;
  }();
  const __m512i index = _mm512_load_si512(kUpper.data());
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(rounded_up_halves(low), index, rounded_up_halves(high)));
}

}  // namespace st::cpu::ST_ISA::micro
