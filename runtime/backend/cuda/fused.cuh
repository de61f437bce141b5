// x y + z and sums of squares, rounded once.
#pragma once

#include <cmath>

#include <device/threads.h>

namespace st::cuda {

DEVICE float fused(float x, float y, float z) { return fmaf(x, y, z); }
DEVICE double fused(double x, double y, double z) { return fma(x, y, z); }

/// sum + x^2, whose square is exact.
DEVICE double with_square(double sum, float x) {
  const double wide = x;
  return fma(wide, wide, sum);
}

}  // namespace st::cuda
