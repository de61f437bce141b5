#include "core_peak.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "seconds_now.h"

namespace cli {

CorePeak::CorePeak(const PeakLoop& loop, int threads) : threads_(std::max(1, threads)), loop_(loop) {
  seconds_of(turns_);  // warms up the units
  turns_ = std::max(turns_, static_cast<long>(static_cast<double>(turns_) * 0.02 / seconds_of(turns_)));
}

double CorePeak::rate_of(long turns) const { return static_cast<double>(turns) * loop_.flops_a_turn * threads_ / seconds_of(turns); }

double CorePeak::seconds_of(long turns) const {
  std::atomic<int> ready{0};
  std::atomic<double> sink{0};
  std::vector<double> seconds(static_cast<size_t>(threads_));
  const auto work = [&](int thread) {
    ready.fetch_add(1);
    while (ready.load() < threads_) std::this_thread::yield();
    const double start = seconds_now();
    sink.store(loop_.run(turns), std::memory_order_relaxed);
    seconds[static_cast<size_t>(thread)] = seconds_now() - start;
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads_; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
  // The mean of the threads' own times: the last thread runs its tail alone, at another clock frequency.
  double sum = 0;
  for (const double s : seconds) sum += s;
  return sum / threads_;
}

}  // namespace cli
