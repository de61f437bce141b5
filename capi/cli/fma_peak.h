// The peak multiply-add throughput of this machine's cores, measured now: the limit that a step is compared with.
#pragma once

#include "core_peak.h"

namespace cli {

/// The widest fp32 FMA of this processor: "AVX-512", "AVX2" or "portable".
PeakLoop fma_loop();

class FmaPeak : public CorePeak {
 public:
  explicit FmaPeak(int threads) : CorePeak(fma_loop(), threads) {}
};

}  // namespace cli
