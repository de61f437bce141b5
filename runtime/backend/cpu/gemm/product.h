// One product of the batch, block by block; gemm.cpp handles the batch.
#pragma once

#include "backend/cpu/gemm/panels.h"
#include "gemm/gemm_kernels.h"

namespace st::cpu::ST_ISA {

/// C = alpha * op(A) op(B) + beta * C by packed panels. The block loops (in the schedule's order) cut N, K and M. In each step all threads
/// pack the blocks of A and B that changed (or the tasks pack them), then all threads take tasks. A task loops over its panels of B and,
/// for each, over its panels of A: the panel of B and the task's A stay in L2. K blocks are added in order and none is shared between
/// threads, so threads and blocks change no bit; kc does.
struct Product {
  Panels panels;
  GemmOperands x;
  float* sums = nullptr;         // row-major block of C, or null
  bool bias_along_rows = false;  // the bias is constant along a row: C is the transpose of the caller's

  void run(Workers& workers) const;
};

}  // namespace st::cpu::ST_ISA
