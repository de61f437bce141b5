// The driver of the simulated devices, as far as contexts go.
#pragma once

#include "backend/cuda/cuda_context.h"

namespace st::simulated {

/// Throws unavailable where there is no such device.
cuda::HeldContext held_context(int device);

}  // namespace st::simulated
