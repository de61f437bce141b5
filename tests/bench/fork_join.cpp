// The cost of a parallel loop on two threads: Workers and, if the compiler has it, GCC's OpenMP, back to back, so within the time for which
// a waiting thread spins, and after a sleep of 1 ms. Empty tasks may all be done by the caller; of two tasks of 2 us each thread must take
// one, and the cost is the time beyond 2 us. Run: fork_join [rounds]. Prints microseconds: median and 90th percentile.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/workers.h"
#include "samples.h"

namespace {

using Clock = std::chrono::steady_clock;

/// Works for some time without memory.
void work(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) __asm__ volatile("" ::: "memory");
}

double microseconds(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

int64_t steps_of_two_microseconds() {
  int64_t steps = 1000;
  for (double least = 0; least < 2; steps = steps * 5 / 4) {
    least = 1e9;
    for (int i = 0; i < 200; ++i) {
      const auto start = Clock::now();
      work(steps);
      least = std::min(least, microseconds(start));
    }
  }
  return steps;
}

/// Times `fork(steps)`, in which each of two threads works for `steps`. Back to back a sample is the mean of ten, because reading the clock
/// takes some 30 ns.
template <class Fork>
void measure(const char* name, int rounds, int64_t steps, const Fork& fork) {
  for (const bool sleeps : {false, true}) {
    const int samples = sleeps ? rounds / 20 : rounds, each = sleeps ? 1 : 10;
    std::vector<double> times;
    for (int i = 0; i < samples; ++i) {
      if (sleeps) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      auto start = Clock::now();
      for (int k = 0; k < each; ++k) fork(steps);
      double cost = microseconds(start);
      start = Clock::now();
      for (int k = 0; k < each; ++k) work(steps);
      cost -= microseconds(start);
      times.push_back(cost / each);
    }
    std::printf("%-8s %-14s %-14s median %6.2f us, p90 %6.2f us\n", name, steps == 0 ? "empty tasks" : "tasks of 2 us",
                sleeps ? "after a sleep" : "back to back", bench::median(times), bench::quantile(times, 0.9));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20'000;
  for (const int64_t steps : {int64_t{0}, steps_of_two_microseconds()}) {
    {
      st::Workers workers(2);
      measure("Workers", rounds, steps, [&](int64_t each) { workers.run(2, [=](int64_t) { work(each); }); });
    }
#if defined(_OPENMP)
    measure("OpenMP", rounds, steps, [](int64_t each) {
#pragma omp parallel for num_threads(2) schedule(static, 1)
      for (int64_t i = 0; i < 2; ++i) work(each);
    });
#endif
  }
  return 0;
}
