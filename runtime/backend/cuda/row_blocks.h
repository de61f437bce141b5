// The workspace of column sums: a row for each block of rows (row_blocks.cuh).
#pragma once

#include <cstdint>

namespace st::cuda {

constexpr int64_t kRowsOfBlock = 32;

constexpr int64_t row_blocks_of(int64_t rows) { return (rows + kRowsOfBlock - 1) / kRowsOfBlock; }

}  // namespace st::cuda
