// One tile of C: the micro-kernel's sums, finished and written.
#pragma once

#include "backend/cpu/gemm/micro.h"
#include "backend/cpu/gemm/product.h"

namespace st::cpu::ST_ISA {

/// A tile of C and the `depth` steps of the K block at k that are added to it.
struct Tile {
  int64_t row, rows, column, columns, k, depth = 0;  // depth in cells
  const micro::Cell *a = nullptr, *b = nullptr;
  int64_t b_stride = 0;
  float* sum = nullptr;  // partial sums over the K blocks, if not in C
  int64_t sum_stride = 0;
  const float* resume = nullptr;  // this K block's sums so far
  int64_t resume_stride = 0;
  const micro::Cell* ahead = nullptr;  // input of a later tile, to prefetch
  int64_t ahead_step = 0;
  micro::LinesAhead* lines = nullptr;  // the same for tile kernels
  micro::Cell* packed = nullptr;       // if B is read in place: where to pack it on the way; null: b is packed
};

/// Adds the K block's products; after the last one applies alpha, beta and bias, and rounds to C's type.
void write_tile(const Product& product, const Tile& tile);

}  // namespace st::cpu::ST_ISA
