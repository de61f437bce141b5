// Few rows of C: B is read once, in place, while a task's sums are kept. A sum is the same chain of additions as with packed panels.
#pragma once

#include "backend/cpu/gemm/product.h"
#include "gemm/task_grid.h"

namespace st::cpu::ST_ISA {

/// A task's share of the K block at at.k (tile kernels: of all K blocks). `waiting`: buffer for its sums.
void task_in_place(const Product& product, const BlockOrigin& at, const TaskBlock& block, float* waiting);

}  // namespace st::cpu::ST_ISA
