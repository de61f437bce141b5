// The share of a core's FMA peak that a product reaches: each sample is taken between two samples of an FMA loop, because clocks change.
// Run: gemm_probe <portable|avx2|avx512> [threads] [rounds]. Prints per shape the median fraction of the peak and its quartiles.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "backend/cpu/gemm/entry.h"
#include "base/os/machine.h"
#include "base/os/pages.h"
#include "samples.h"

namespace {

using bench::quantile;
using st::GemmProblem;

struct Shape {
  const char* name;
  int64_t m, n, k;
  bool transpose_a, transpose_b;
};

// Fixed before tuning: squares, GPT-2's layers forward and backward at 512 tokens, few rows, odd sizes.
constexpr Shape kShapes[] = {
    {"square 128", 128, 128, 128, false, false},
    {"square 256", 256, 256, 256, false, false},
    {"square 512", 512, 512, 512, false, false},
    {"square 1024", 1024, 1024, 1024, false, false},
    {"square 2048", 2048, 2048, 2048, false, false},
    {"fc1 forward", 512, 3072, 768, false, false},
    {"fc2 forward", 512, 768, 3072, false, false},
    {"fc1 input gradient", 512, 768, 3072, false, true},
    {"fc1 weight gradient", 768, 3072, 512, true, false},
    {"M = 8", 8, 3072, 768, false, false},
    {"M = 1", 1, 3072, 768, false, false},
    {"odd", 37, 1013, 511, false, false},
};

// Twelve separate variables: GCC 12 puts an array of vectors on the stack, which halves the "peak".
#define ST_TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

__attribute__((target("avx512f"))) double peak_avx512(int64_t rounds) {
  typedef float V __attribute__((vector_size(64)));
#define ST_DECLARE(i) V s##i = {static_cast<float>(i)};
  ST_TWELVE(ST_DECLARE)
  const V x = {0.5F}, y = {0.25F};
  for (int64_t r = 0; r < rounds; ++r) {
#define ST_FMA(i) __asm__ volatile("vfmadd231ps %1, %2, %0" : "+v"(s##i) : "v"(x), "v"(y));
    ST_TWELVE(ST_FMA) ST_TWELVE(ST_FMA)
  }
#define ST_ADD(i) total += s##i;
  V total = {};
  ST_TWELVE(ST_ADD)
  volatile float sink = total[0];
  static_cast<void>(sink);
  return 24.0 * 32 * static_cast<double>(rounds);
}

__attribute__((target("avx2,fma"))) double peak_avx2(int64_t rounds) {
  typedef float V __attribute__((vector_size(32)));
  ST_TWELVE(ST_DECLARE)
  const V x = {0.5F}, y = {0.25F};
  for (int64_t r = 0; r < rounds; ++r) {
    ST_TWELVE(ST_FMA) ST_TWELVE(ST_FMA)
  }
  V total = {};
  ST_TWELVE(ST_ADD)
  volatile float sink = total[0];
  static_cast<void>(sink);
  return 24.0 * 16 * static_cast<double>(rounds);
}

double peak_sse(int64_t rounds) {  // multiply and add: the portable set has no FMA
  typedef float V __attribute__((vector_size(16)));
  ST_TWELVE(ST_DECLARE)
  const V x = {0.5F};
  for (int64_t r = 0; r < rounds; ++r) {
#define ST_MUL_ADD(i) __asm__ volatile("mulps %1, %0\n\taddps %1, %0" : "+x"(s##i) : "x"(x));
    ST_TWELVE(ST_MUL_ADD) ST_TWELVE(ST_MUL_ADD)
  }
  V total = {};
  ST_TWELVE(ST_ADD)
  volatile float sink = total[0];
  static_cast<void>(sink);
  return 24.0 * 8 * static_cast<double>(rounds);
}

std::vector<float> random_values(int64_t n) {
  static uint64_t state = 88172645463325252ULL;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    v = static_cast<float>(state >> 40) * 0x1p-23F - 1.0F;
  }
  return values;
}

/// With one thread, the CPU time of this process, which excludes time that other processes take on a busy machine. Else the wall clock.
double now(int threads) {
  if (threads > 1) return st::os::seconds();
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string set = argc > 1 ? argv[1] : "avx512";
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 15;
  const st::GemmKernels& entry = set == "avx512" ? *st_cpu_gemm_avx512() : set == "avx2" ? *st_cpu_gemm_avx2() : *st_cpu_gemm_portable();
  double (*const peak)(int64_t) = set == "avx512" ? peak_avx512 : set == "avx2" ? peak_avx2 : peak_sse;

  st::Workers workers(threads);
  const auto peak_rate = [&] {  // for all threads together
    constexpr int64_t kRounds = 60000;
    std::vector<double> done(static_cast<size_t>(threads));
    const double begin = now(threads);
    workers.run(threads, [&](int64_t i) { done[static_cast<size_t>(i)] = peak(kRounds); });
    double flops = 0;
    for (const double d : done) flops += d;
    return flops / (now(threads) - begin);
  };
  peak_rate();

  std::printf("%s, %d threads, %d rounds; fraction of the FMA loop's rate next to it: median [quartiles]\n", set.c_str(), threads, rounds);
  for (const Shape& shape : kShapes) {
    if (argc > 4 && std::strstr(shape.name, argv[4]) == nullptr) continue;
    GemmProblem p;
    p.m = shape.m, p.n = shape.n, p.k = shape.k;
    p.a = shape.transpose_a ? st::MatrixStrides{1, p.m} : st::MatrixStrides{p.k, 1};
    p.b = shape.transpose_b ? st::MatrixStrides{1, p.k} : st::MatrixStrides{p.n, 1};
    p.c = {p.n, 1};
    const std::vector<float> a = random_values(p.m * p.k), b = random_values(p.k * p.n);
    std::vector<float> c(static_cast<size_t>(p.m * p.n), -1e30F);
    const st::TileSchedule schedule = entry.schedule(p, {});
    st::os::Pages workspace(entry.workspace(p, schedule, threads));
    const double work = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const int repeats = std::max(1, static_cast<int>(2e8 / work));
    const auto multiply = [&] {
      entry.run(p, schedule, {a.data(), b.data(), c.data(), nullptr}, {workspace.data(), static_cast<size_t>(workspace.size())}, workers);
    };
    multiply();
    std::vector<double> fractions, rates;
    for (int r = 0; r < rounds; ++r) {
      const double before = peak_rate();
      const double begin = now(threads);
      for (int i = 0; i < repeats; ++i) multiply();
      const double rate = work * repeats / (now(threads) - begin);
      const double after = peak_rate();
      fractions.push_back(rate / ((before + after) / 2));
      rates.push_back(rate / 1e9);
    }
    // The speed of a wrong product is worth nothing: check one element against double precision.
    double expected = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      expected += static_cast<double>(a[static_cast<size_t>((p.m - 1) * p.a.row + k * p.a.column)]) *
                  static_cast<double>(b[static_cast<size_t>(k * p.b.row + (p.n - 1) * p.b.column)]);
    }
    const double error = std::abs(expected - static_cast<double>(c.back()));
    std::printf("%-20s %5ldx%5ldx%5ld  %.3f [%.3f %.3f]  %6.1f GFLOP/s  %s%s\n", shape.name, p.m, p.n, p.k, quantile(fractions, 0.5),
                quantile(fractions, 0.25), quantile(fractions, 0.75), quantile(rates, 0.5), st::text_of(schedule).c_str(),
                error < 1e-3 ? "" : "  WRONG");
  }
  return 0;
}
