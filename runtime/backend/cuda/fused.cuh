// x y + z, rounded once.
#pragma once

#include <cmath>

#include <device/threads.h>

namespace st::cuda {

DEVICE float fused(float x, float y, float z) { return fmaf(x, y, z); }
DEVICE double fused(double x, double y, double z) { return fma(x, y, z); }

}  // namespace st::cuda
