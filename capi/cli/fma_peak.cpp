// acc = acc * m + a in twelve accumulators: latency 4 times two units needs eight chains, twelve leave a margin. Each has a name: GCC 12
// puts an array of vectors on the stack, which halves the "peak". The disassembly shows twelve vfmadd per turn and no store.
#include "fma_peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cli {
namespace {

// clang-format off
#define ST_TWELVE(X) X(a) X(b) X(c) X(d) X(e) X(f) X(g) X(h) X(i) X(j) X(k) X(l)
// clang-format on
constexpr double kAccumulators = 12;
constexpr float kFactor = 0.999f, kAddend = 1e-3f;  // converges to 1: no overflow, no denormals

#if defined(__x86_64__)
__attribute__((target("avx512f"))) double loop_avx512(long turns) {
  const __m512 m = _mm512_set1_ps(kFactor), n = _mm512_set1_ps(kAddend);
#define ST_BEGIN_AT(x) __m512 x = _mm512_set1_ps(static_cast<float>(#x[0]));
#define ST_TURN(x) x = _mm512_fmadd_ps(x, m, n);
#define ST_SUM(x) sum = _mm512_add_ps(sum, x);
  ST_TWELVE(ST_BEGIN_AT)
  for (long t = 0; t < turns; ++t) {
    ST_TWELVE(ST_TURN)
  }
  __m512 sum = _mm512_setzero_ps();
  ST_TWELVE(ST_SUM)
#undef ST_BEGIN_AT
#undef ST_TURN
#undef ST_SUM
  return static_cast<double>(_mm512_cvtss_f32(sum));
}

__attribute__((target("avx2,fma"))) double loop_avx2(long turns) {
  const __m256 m = _mm256_set1_ps(kFactor), n = _mm256_set1_ps(kAddend);
#define ST_BEGIN_AT(x) __m256 x = _mm256_set1_ps(static_cast<float>(#x[0]));
#define ST_TURN(x) x = _mm256_fmadd_ps(x, m, n);
#define ST_SUM(x) sum = _mm256_add_ps(sum, x);
  ST_TWELVE(ST_BEGIN_AT)
  for (long t = 0; t < turns; ++t) {
    ST_TWELVE(ST_TURN)
  }
  __m256 sum = _mm256_setzero_ps();
  ST_TWELVE(ST_SUM)
#undef ST_BEGIN_AT
#undef ST_TURN
#undef ST_SUM
  return static_cast<double>(_mm256_cvtss_f32(sum));
}
#endif

using Vector4 = float __attribute__((vector_size(16)));

double loop_portable(long turns) {
  const Vector4 m = {kFactor, kFactor, kFactor, kFactor}, n = {kAddend, kAddend, kAddend, kAddend};
#define ST_BEGIN_AT(x) Vector4 x = m + static_cast<float>(#x[0]);
#define ST_TURN(x) x = x * m + n;
#define ST_SUM(x) sum += x;
  ST_TWELVE(ST_BEGIN_AT)
  for (long t = 0; t < turns; ++t) {
    ST_TWELVE(ST_TURN)
  }
  Vector4 sum = {0, 0, 0, 0};
  ST_TWELVE(ST_SUM)
#undef ST_BEGIN_AT
#undef ST_TURN
#undef ST_SUM
  return static_cast<double>(sum[0]);
}

#undef ST_TWELVE

}  // namespace

PeakLoop fma_loop() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512", loop_avx512, kAccumulators * 2 * 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"AVX2", loop_avx2, kAccumulators * 2 * 8};
#endif
  return {"portable", loop_portable, kAccumulators * 2 * 4};
}

}  // namespace cli
