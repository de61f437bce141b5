// The vector of fp32 lanes of the instruction set that this file is compiled for, and the operations that products need.
// Plain arithmetic (+ * and comparisons) uses the compiler's vector types. Contraction is off: a fused multiply-add is always explicit.
#pragma once

#include <cstdint>
#include <cstring>

#include "gemm/schedule.h"

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

namespace st::cpu::ST_ISA::micro {

#if defined(__AVX512F__)
using Lanes = __m512;
#if defined(ST_BF16_TILES)
constexpr InstructionSet kInstructionSet = InstructionSet::amx_bf16;
#elif defined(ST_BF16_PAIRS)
constexpr InstructionSet kInstructionSet = InstructionSet::avx512_bf16;
#else
constexpr InstructionSet kInstructionSet = InstructionSet::avx512;
#endif
#elif defined(__AVX2__) && defined(__FMA__)
using Lanes = __m256;
constexpr InstructionSet kInstructionSet = InstructionSet::avx2;
#else
using Lanes = float __attribute__((vector_size(16)));
constexpr InstructionSet kInstructionSet = InstructionSet::portable;
#endif
constexpr KernelTile kKernelTile = kernel_tile(kInstructionSet);
constexpr int kTileRows = kKernelTile.rows, kTileColumns = kKernelTile.columns, kWidth = kKernelTile.width();
static_assert(sizeof(Lanes) == kWidth * sizeof(float));

#define ST_MICRO inline __attribute__((always_inline))

ST_MICRO Lanes load(const float* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
ST_MICRO void store(float* p, Lanes v) { std::memcpy(p, &v, sizeof(v)); }
ST_MICRO Lanes broadcast(float x) {
#if defined(__AVX512F__)
  return _mm512_set1_ps(x);
#elif defined(__AVX2__)
  return _mm256_set1_ps(x);
#else
  return Lanes{x, x, x, x};
#endif
}

/// a * b + c, rounded once (portable: twice).
ST_MICRO Lanes fma(Lanes a, Lanes b, Lanes c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

#if defined(__AVX2__) && !defined(__AVX512F__)
ST_MICRO __m256i lane_mask(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif

/// The first n lanes (0..kWidth), the others zero; does not touch memory beyond them.
ST_MICRO Lanes load(const float* p, int64_t n) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << n) - 1), p);
#elif defined(__AVX2__)
  return _mm256_maskload_ps(p, lane_mask(n));
#else
  float lanes[kWidth] = {};
  std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(float));
  return load(lanes);
#endif
}

ST_MICRO void store(float* p, Lanes v, int64_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1U << n) - 1), v);
#elif defined(__AVX2__)
  _mm256_maskstore_ps(p, lane_mask(n), v);
#else
  std::memcpy(p, &v, static_cast<size_t>(n) * sizeof(float));
#endif
}

}  // namespace st::cpu::ST_ISA::micro
