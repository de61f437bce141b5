// scaletrain bench gemm --tiles: one product with every tile size, drawn as a heat map that shows why the tile matters.
#pragma once

#include "bench.h"
#include "gemm_shapes.h"

namespace cli {

/// Writes options.report, an HTML page that needs nothing else, and the same maps as a PNG beside it.
void map_tiles(const GemmShape& shape, const BenchOptions& options, int64_t rounds, int64_t threads);

}  // namespace cli
