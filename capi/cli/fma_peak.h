// What this machine's cores can multiply and add right now: the limit that a step is measured against.
#pragma once

namespace cli {

class FmaPeak {
 public:
  /// `threads` of them run the loop at once, since cores share clock and power.
  explicit FmaPeak(int threads);

  /// FLOP/s of all threads together, over about 20 ms.
  double measure() const;

  /// "AVX-512", "AVX2" or "portable".
  const char* kind() const { return kind_; }

 private:
  using Loop = double (*)(long turns);  // returns a sum, so that nothing is optimised away
  double seconds_of(long turns) const;

  int threads_;
  Loop loop_;
  double flops_a_turn_;
  const char* kind_;
  long turns_;
};

}  // namespace cli
