// The options of `scaletrain bench`. Each kind has a file: bench_step.cpp, bench_gemm.cpp, bench_optimizer.cpp, bench_collective.cpp,
// bench_checkpoint.cpp; --calibrate, which has no kind: bench_calibrate.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

struct BenchOptions {
  std::string kind, rounds = "15", threads = "0", against = "all", shapes, shape, report, dtype = "fp32", gemm_library = "own", ranks = "2",
                    device = "cpu";
  std::string serve, rank = "-1";  // bench collective passes them to the processes that it starts (own_collective.h)
  std::string calibrate, seconds;  // a file, for `bench --calibrate` without a kind
  bool quick = false, json = false, tiles = false, memory = false, tune = false;
};

/// Each refuses options of the other kinds. `rounds` and `threads` are at least 1.
void bench_step(const BenchOptions& options, int64_t rounds, int64_t threads);
void bench_gemm(const BenchOptions& options, int64_t rounds, int64_t threads);
void bench_optimizer(const BenchOptions& options, int64_t rounds, int64_t threads);
void bench_collective(const BenchOptions& options, int64_t rounds, int64_t threads);
void bench_checkpoint(const BenchOptions& options, int64_t rounds, int64_t threads);

/// The time to measure unless --seconds is given, without and with --quick.
inline constexpr const char *kCalibrateSeconds = "40", *kQuickSeconds = "5";
/// Measures this machine for `plan --machine FILE`, and writes options.calibrate.
void bench_calibrate(const BenchOptions& options, int64_t threads);

}  // namespace cli
