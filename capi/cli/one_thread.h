// Our product on one thread, compared with the same product on several: the speed-up, next to that of the FMA loop.
#pragma once

#include <optional>

#include "fma_peak.h"
#include "own_gemm.h"

namespace cli {

class OneThread {
 public:
  OneThread();

  /// For squares of 512 and above with a plain B: smaller products run on one thread anyway.
  static bool measures(const GemmShape& shape) { return shape.plain && shape.m == shape.n && shape.n == shape.k && shape.m >= 512; }
  /// The operands must stay alive until the next open() or the end of this object.
  void open(GemmOperands& operands);

  struct Sample {
    double speed, peak;  // FLOP/s: of the product, and of the FMA loop right after it
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
