// Our product with one thread, beside the same product with several: how much the others add, and what they add to the FMA loop.
#pragma once

#include <optional>

#include "fma_peak.h"
#include "own_gemm.h"

namespace cli {

class OneThread {
 public:
  OneThread();

  /// For squares of 512 and above with a plain B: smaller ones are for one thread.
  static bool measures(const GemmShape& shape) { return shape.plain && shape.m == shape.n && shape.n == shape.k && shape.m >= 512; }
  /// The operands outlive it, or the next open().
  void open(GemmOperands& operands);

  struct Sample {
    double speed, peak;  // FLOP/s: of the product, of the FMA loop straight behind it
  };
  Sample sample(uint64_t seed);

 private:
  FmaPeak peak_;
  Context context_;
  GemmOperands* operands_ = nullptr;
  std::optional<OwnGemm> own_;
  std::optional<GemmSampler> sampler_;
};

}  // namespace cli
