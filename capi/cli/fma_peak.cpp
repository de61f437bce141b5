// acc = acc * m + a in twelve accumulators: latency 4 times two units needs eight chains, twelve leave room for hiccups. Each has a name:
// GCC 12 puts an array of vectors on the stack, and the "peak" comes out at half. The disassembly shows twelve vfmadd a turn and no store.
#include "fma_peak.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "seconds_now.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cli {
namespace {

// clang-format off
#define ST_TWELVE(X) X(a) X(b) X(c) X(d) X(e) X(f) X(g) X(h) X(i) X(j) X(k) X(l)
// clang-format on
constexpr double kAccumulators = 12;
constexpr float kFactor = 0.999f, kAddend = 1e-3f;  // tends to 1: no overflow, no denormals

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

FmaPeak::FmaPeak(int threads)
    : threads_(std::max(1, threads)), loop_(loop_portable), flops_a_turn_(kAccumulators * 2 * 4), kind_("portable"), turns_(100'000) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    loop_ = loop_avx512, flops_a_turn_ = kAccumulators * 2 * 16, kind_ = "AVX-512";
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    loop_ = loop_avx2, flops_a_turn_ = kAccumulators * 2 * 8, kind_ = "AVX2";
  }
#endif
  seconds_of(turns_);  // wakes the vector units
  turns_ = std::max(turns_, static_cast<long>(static_cast<double>(turns_) * 0.02 / seconds_of(turns_)));
}

double FmaPeak::measure() const { return static_cast<double>(turns_) * flops_a_turn_ * threads_ / seconds_of(turns_); }

double FmaPeak::seconds_of(long turns) const {
  std::atomic<int> ready{0};
  std::atomic<double> sink{0};
  std::vector<double> seconds(static_cast<size_t>(threads_));
  const auto work = [&](int thread) {
    ready.fetch_add(1);
    while (ready.load() < threads_) std::this_thread::yield();
    const double start = seconds_now();
    sink.store(loop_(turns), std::memory_order_relaxed);
    seconds[static_cast<size_t>(thread)] = seconds_now() - start;
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads_; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
  // The mean of the threads' own times: the last one to end runs its tail alone, at another clock.
  double sum = 0;
  for (const double s : seconds) sum += s;
  return sum / threads_;
}

}  // namespace cli
