// A finished piece of C through its epilogue, row by row.
#pragma once

#include "gemm/gemm_kernels.h"

namespace st::cpu::ST_ISA {

struct EpiloguePiece {
  void* c;  // of the whole matrix
  MatrixStrides at;
  DType type;
  int64_t row, rows, column, columns;
};

void apply_epilogue(const GemmEpilogue& epilogue, const EpiloguePiece& piece);

/// Of the problem's own orientation, C finished.
void sum_columns(const GemmProblem& problem, const void* c, void* sums, Workers& workers);

}  // namespace st::cpu::ST_ISA
