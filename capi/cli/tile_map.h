// scaletrain bench gemm --tiles: one product with every tile size, drawn as a heat map that shows the effect of the tile.
#pragma once

#include "bench.h"
#include "gemm_shapes.h"

namespace cli {

/// Writes options.report, a self-contained HTML page, and a PNG of the same maps next to it.
void map_tiles(const GemmShape& shape, const BenchOptions& options, int64_t rounds, int64_t threads);

}  // namespace cli
