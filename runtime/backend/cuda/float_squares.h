// Sums of squares of fp32 numbers in fp64, in an order that depends on their number only.
#pragma once

#include <cstdint>

#include <device/launch.h>

#include "backend/cuda/square_chunks.h"

namespace st::cuda {

/// sums[square_chunks(elements)]; x is aligned to 16 bytes.
void enqueue_float_squares(StreamHandle stream, const float* x, int64_t elements, double* sums);

}  // namespace st::cuda
