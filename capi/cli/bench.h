// What `scaletrain bench` was asked for. Each kind has a file: bench_step.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

struct BenchOptions {
  std::string kind, rounds = "15", threads = "0", against = "all", shapes;
  bool json = false;
};

/// Refuses what is not its own. `rounds` and `threads` are at least 1.
void bench_step(const BenchOptions& options, int64_t rounds, int64_t threads);

}  // namespace cli
