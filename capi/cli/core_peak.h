// What this machine's cores do right now in a loop of one instruction: a limit that a speed is measured against.
#pragma once

namespace cli {

struct PeakLoop {
  const char* kind;           // its instruction, for people
  double (*run)(long turns);  // returns a sum, so that nothing is optimised away
  double flops_a_turn;
};

class CorePeak {
 public:
  /// `threads` of them run the loop at once, since cores share clock and power.
  CorePeak(const PeakLoop& loop, int threads);

  /// FLOP/s of all threads together, over about 20 ms.
  double measure() const { return rate_of(turns_); }
  /// The same over 0.2 ms: before the clock has left what the work just done made of it. Within a millisecond it rises: an Intel Xeon that
  /// runs this loop at 240 GFLOP/s runs it at 190 after 10 ms of matrix products.
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
