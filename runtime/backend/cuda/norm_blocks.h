// How the gradients of a norm's gamma and beta are summed: for kernels, and for what they need of memory.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace st::cuda {

constexpr int kRowsOfTile = 8;           // rows added at a time
constexpr int64_t kMostRowBlocks = 256;  // partial sums of a column, whatever the device

/// Rows of a block: whole tiles.
constexpr int64_t rows_of_block(int64_t rows) {
  const int64_t tiles = (rows + kRowsOfTile - 1) / kRowsOfTile;
  return (tiles + kMostRowBlocks - 1) / kMostRowBlocks * kRowsOfTile;
}
constexpr int64_t row_blocks(int64_t rows) { return rows == 0 ? 0 : (rows + rows_of_block(rows) - 1) / rows_of_block(rows); }

/// Bytes of [blocks][sums][columns] in the type of computation; sums: gamma's, and beta's if there is one.
constexpr int64_t norm_partials(DType dtype, int64_t rows, int64_t sums, int64_t columns) {
  return row_blocks(rows) * sums * columns * (dtype == DType::f64 ? 8 : 4);
}

}  // namespace st::cuda
