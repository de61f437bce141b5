// Median time and rate of an all_reduce by size, between ranks as processes of one machine, then as threads of one process.
//
// Usage: collective_times [RANKS [DTYPE [group]]]     default 2 ranks and f32; "group": in a duplicate of the ranks' group. "cpu": time
// during which this rank's thread had a core, for a machine that others use too.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "comm/direct_exchange.h"
#include "comm/local/process_group.h"
#include "comm/local/thread_group.h"
#include "samples.h"

namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

bool is_duplicated = false;

void measure(st::Communicator& whole, st::DType dtype) {
  const auto twin = is_duplicated ? whole.duplicate({}) : nullptr;
  st::Communicator& group = is_duplicated ? *twin : whole;
  for (const int64_t bytes : {int64_t{8}, int64_t{4} << 10, int64_t{64} << 10, int64_t{1} << 20, int64_t{64} << 20}) {
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    const int rounds = bytes <= 64 << 10 ? 3001 : bytes <= 1 << 20 ? 201 : 15;
    std::vector<double> wall, cpu;
    for (int round = 0; round < rounds; ++round) {
      group.barrier();
      const double began = st::os::seconds(), had = thread_seconds();
      group.all_reduce(data.data(), bytes / st::bytes_of(dtype), dtype, st::ReduceOp::sum);
      cpu.push_back(thread_seconds() - had);
      wall.push_back(st::os::seconds() - began);
    }
    if (group.rank() != 0) continue;
    const double time = bench::median(wall), cpu_time = bench::median(cpu);
    std::printf("%9lld bytes: %10.2f us, %6.2f GB/s; cpu %10.2f us, %6.2f GB/s\n", static_cast<long long>(bytes), time * 1e6,
                static_cast<double>(bytes) / time * 1e-9, cpu_time * 1e6, static_cast<double>(bytes) / cpu_time * 1e-9);
  }
}

/// The first rank is this process.
void measure_processes(int ranks, st::DType dtype) {
  const auto be = [&, job = st::text("collective_times of process ", st::os::process_id())](int rank) {
    st::ProcessGroupOptions options;
    options.job = job;
    options.rank = rank;
    options.size = ranks;
    st::DirectExchange group(st::join_process_group(options));
    measure(group, dtype);
  };
  std::fflush(stdout);
  for (int rank = 1; rank < ranks; ++rank)
    if (fork() == 0) {
      be(rank);
      _exit(0);
    }
  be(0);
  while (wait(nullptr) > 0) continue;
}

void measure_threads(int ranks, st::DType dtype) {
  auto ends = st::make_thread_group(ranks);
  std::vector<std::thread> threads;
  for (auto& end : ends)
    threads.emplace_back([&end, dtype] {
      st::DirectExchange group(std::move(end));
      measure(group, dtype);
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace

int main(int count, char** arguments) {
  const int ranks = count > 1 ? std::atoi(arguments[1]) : 2;
  const st::DType dtype = st::dtype_named(count > 2 ? arguments[2] : "f32");
  is_duplicated = count > 3;
  std::puts("processes:");
  measure_processes(ranks, dtype);
  std::puts("threads:");
  measure_threads(ranks, dtype);
  return 0;
}
