// The throughput of this machine's cores in a loop of one instruction: the limit that a speed is compared with.
#pragma once

namespace cli {

struct PeakLoop {
  const char* kind;           // its instruction, for printing
  double (*run)(long turns);  // returns a sum, so that the compiler keeps the loop
  double flops_a_turn;
};

class CorePeak {
 public:
  /// Runs the loop on `threads` threads at once, since cores share clock and power.
  CorePeak(const PeakLoop& loop, int threads);

  /// FLOP/s of all threads together, measured over about 20 ms.
  double measure() const { return rate_of(turns_); }
  /// The same over 0.2 ms, at the clock frequency that the preceding work left. The frequency recovers within a millisecond: an Intel Xeon
  /// that runs this loop at 240 GFLOP/s runs it at 190 right after 10 ms of matrix products.
  double measure_now() const { return rate_of(turns_ / 100); }
  const char* kind() const { return loop_.kind; }

 private:
  double rate_of(long turns) const;
  double seconds_of(long turns) const;

  int threads_;
  PeakLoop loop_;
  long turns_ = 20'000;
};

}  // namespace cli
