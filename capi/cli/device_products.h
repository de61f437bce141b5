// scaletrain bench gemm --device: products on a device of its own memory, timed there.
#pragma once

#include <vector>

#include "bench.h"
#include "gemm_shapes.h"

namespace cli {

/// --tiles: one product with every tile, drawn as a heat map; tiles that the device lacks say what they would take.
void map_device_tiles(const GemmShape& shape, const BenchOptions& options, int64_t rounds);

/// --tune: the products of training a layer (output, gradients of input and weight) of each shape, by each of our tiles and each algorithm
/// of the device's library. Writes the fastest into options.report, for SCALETRAIN_CUDA_PRODUCTS.
void tune_device_products(const std::vector<GemmShape>& shapes, const BenchOptions& options, int64_t rounds);

}  // namespace cli
