// Kernels for wrapper_probes that have instructions of sm_90a, which are compiled for it alone. Each is given to the stream.
#pragma once

#include <cstdint>

#include <device/launch.h>

#include "../cuda/tile_ring.cuh"

namespace st::probes {

struct Product {
  const uint16_t *a, *b;
  float* c;  // [64, 64] = a b^T
};

/// y [32, 8] = x by the copy engine, in two copies that one barrier counts; the second phase copies the first half again.
void copy_by_engine(cuda::StreamHandle stream, const uint16_t* x, uint16_t* y, uint16_t* again);

/// Multiplies a and b [rows, columns], whose tiles are copied into a ring.
void multiply_by_ring(cuda::StreamHandle stream, cuda::TileFault fault, const Product& of, int rows, int columns, int steps);

/// Multiplies a and b [64, 64], whose tiles the threads store. TileFault::early_sums has no kernel: nvcc adds the wait that it lacks.
void multiply_stored(cuda::StreamHandle stream, cuda::TileFault fault, const Product& of);

}  // namespace st::probes
