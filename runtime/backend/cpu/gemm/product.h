// One product of the batch as blocks, tasks and tiles; gemm.cpp handles the batch.
#pragma once

#include <algorithm>

#include "backend/cpu/gemm/micro.h"
#include "gemm/gemm_kernels.h"
#include "gemm/task_grid.h"

namespace st::cpu::ST_ISA {

using micro::Cell;

/// A tile of C and the `depth` steps of the K block at k0 that are added to it.
struct Tile {
  int64_t row, rows, column, columns, k0, depth = 0;  // depth in cells
  const Cell *a = nullptr, *b = nullptr;
  int64_t b_stride = 0;
  float* sum = nullptr;  // partial sums over the K blocks, if not in C
  int64_t sum_stride = 0;
  const float* resume = nullptr;  // this K block's sums so far
  int64_t resume_stride = 0;
  const Cell* ahead = nullptr;  // input of a later tile, to prefetch
  int64_t ahead_step = 0;
  micro::LinesAhead* lines = nullptr;  // the same for tile kernels
  Cell* packed = nullptr;              // if B is read in place: where to pack it on the way; null: b is packed
};

/// One product of the batch: its operands and scratch.
struct Product {
  GemmProblem p;
  TileSchedule s;
  GemmOperands x;
  Cell *packed_a = nullptr, *packed_b = nullptr;
  float* sums = nullptr;                              // row-major block of C, or null
  const Cell *ready_a = nullptr, *ready_b = nullptr;  // packed completely in advance
  bool bias_along_rows = false;                       // the bias is constant along a row: C is the transpose of the caller's

  void run(Workers& workers) const;
  void pack_all_a(Cell* to, Workers& workers) const;
  void pack_all_b(Cell* to, Workers& workers) const;
  int64_t padded_columns(int64_t columns) const;  // of packed B: the last panel may be one vector wide

 private:
  void step(int64_t n0, int64_t k0, int64_t m0, bool pack_a, bool pack_b, Workers& workers) const;
  bool packs_on_the_way(int64_t m0, const TaskGrid& grid, int threads) const;
  int64_t pack_tasks_of_b(int64_t n0, bool on_the_way) const;
  void pack_rows_of_a(int64_t m0, int64_t k0, int64_t first, int64_t last, Cell* to) const;
  void pack_columns_of_b(int64_t n0, int64_t k0, int64_t first, int64_t last, Cell* to) const;
  void task(int64_t n0, int64_t k0, int64_t m0, const TaskBlock& block, bool packing) const;
  /// Makes tile number `tile` of a task prefetch its share of the next panel of B to be packed on the way, at column j of the block.
  bool fetches_next_panel(Tile& t, int64_t n0, int64_t j, int64_t tile) const;
  void tile_task(int64_t n0, int64_t k0, int64_t m0, const TaskBlock& block, int64_t room) const;
  void fetch_columns_of_b(micro::LinesAhead& ahead, int64_t column, int64_t columns, int64_t k) const;
  /// `waiting`: buffer for a task's sums.
  void task_in_place(int64_t n0, int64_t k0, int64_t m0, const TaskBlock& block, float* waiting) const;
  int64_t place_of_a(int64_t m0, int64_t k0) const;  // position in ready_a of a block's K block
  int64_t place_of_b(int64_t n0, int64_t k0) const;
  int64_t place_in_block_of_a(int64_t m0, int64_t k0) const;  // position in packed_a
  int64_t place_in_block_of_b(int64_t n0, int64_t k0) const;
  /// body(k) for each K block that is packed together with the one at k0; once for an empty K.
  template <class Body>
  void each_k_block(int64_t k0, const Body& body) const {
    const int64_t end = std::min(p.k, k0 + s.block_k);
    for (int64_t k = k0; k == k0 || k < end; k += s.kc) body(k);
  }
  void compute(const Tile& t) const;
  void finish(const float* tile, int64_t row, int64_t rows, int64_t column, int64_t columns) const;

  int64_t rows_of(int64_t m0) const { return std::min(s.block_m, p.m - m0); }
  int64_t columns_of(int64_t n0) const { return std::min(s.block_n, p.n - n0); }
  int64_t depth_of(int64_t k0) const { return std::min(s.kc, p.k - k0); }
};

}  // namespace st::cpu::ST_ISA
