// scaletrain bench gemm --device: products on a device of its own memory, timed there.
#pragma once

#include <vector>

#include "bench.h"
#include "gemm_shapes.h"

namespace cli {

/// --tiles: one product with every tile, drawn as a heat map; tiles that the device lacks say what they would take.
void map_device_tiles(const GemmShape& shape, const BenchOptions& options, int64_t rounds);

/// --tune: each shape, and of one without a transposed operand, a layer's output, also the gradients of its input and weight; by each of
/// our tiles and each algorithm of the device's library. Writes the fastest into options.report, for SCALETRAIN_CUDA_PRODUCTS.
void tune_device_products(const std::vector<GemmShape>& shapes, const BenchOptions& options, int64_t rounds);

}  // namespace cli
