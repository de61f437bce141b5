// Few rows of C: B is read where it lies, once, some of its rows at a time over a whole task, and the sums wait in between. Each sum is the
// same chain of additions as over packed panels, since it goes on from where it left off.
#pragma once

#include <cstdint>

namespace st::cpu::ST_ISA {

struct FewRows {
  int64_t rows, columns, depth;  // columns: whole tiles
  int64_t tile;                  // rows of a panel of A
  const float* a;                // packed panels
  const float* b;                // row k at b + k * b_stride
  int64_t b_stride;
  float* sums;  // row r at sums + r * columns
};

/// The products' sums over all of `depth`.
void sum_few_rows(const FewRows& x);

}  // namespace st::cpu::ST_ISA
