#include "base/f16_rows.h"

#include <array>
#include <cstring>

#include "base/half_lanes.h"
#include "base/os/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace st {
namespace {

void widen_by_selects(const std::byte* __restrict halves, std::byte* __restrict floats, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t half = 0;
    std::memcpy(&half, halves + i * 2, sizeof half);
    const float value = wide_of_f16(half);
    std::memcpy(floats + i * 4, &value, sizeof value);
  }
}

void narrow_by_selects(const std::byte* __restrict floats, std::byte* __restrict halves, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float value = 0;
    std::memcpy(&value, floats + i * 4, sizeof value);
    const uint16_t half = f16_from(value);
    std::memcpy(halves + i * 2, &half, sizeof half);
  }
}

bool is_anywhere() { return true; }

#if defined(__x86_64__)

constexpr int64_t kEight = 8;

__attribute__((target("avx,f16c"))) void widen_by_f16c(const std::byte* halves, std::byte* floats, int64_t n) {
  int64_t i = 0;
  for (; i + kEight <= n; i += kEight) {
    const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i * 2));
    _mm256_storeu_ps(reinterpret_cast<float*>(floats + i * 4), _mm256_cvtph_ps(eight));
  }
  widen_by_selects(halves + i * 2, floats + i * 4, n - i);
}

__attribute__((target("avx,f16c"))) void narrow_by_f16c(const std::byte* floats, std::byte* halves, int64_t n) {
  int64_t i = 0;
  for (; i + kEight <= n; i += kEight) {
    const __m256 eight = _mm256_loadu_ps(reinterpret_cast<const float*>(floats + i * 4));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i * 2), _mm256_cvtps_ph(eight, _MM_FROUND_TO_NEAREST_INT));
  }
  narrow_by_selects(floats + i * 4, halves + i * 2, n - i);
}

bool has_f16c() { return os::cpu().avx2_fma; }  // F16C too

constexpr std::array kF16Ways = {F16Implementation{"f16c", has_f16c, widen_by_f16c, narrow_by_f16c},
                                 F16Implementation{"selects", is_anywhere, widen_by_selects, narrow_by_selects}};

#else

constexpr std::array kF16Ways = {F16Implementation{"selects", is_anywhere, widen_by_selects, narrow_by_selects}};

#endif

const F16Implementation& fastest_f16() {
  static const F16Implementation& way = kF16Ways[0].is_here() ? kF16Ways[0] : kF16Ways.back();
  return way;
}

}  // namespace

std::span<const F16Implementation> f16_ways() { return kF16Ways; }

void widen_f16(const std::byte* halves, std::byte* floats, int64_t n) { fastest_f16().widen(halves, floats, n); }
void narrow_f16(const std::byte* floats, std::byte* halves, int64_t n) { fastest_f16().narrow(floats, halves, n); }

}  // namespace st
