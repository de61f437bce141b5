// How one product is cut into blocks that are packed at a time, and where their panels lie.
#pragma once

#include <algorithm>

#include "backend/cpu/gemm/cells.h"
#include "gemm/rounding.h"
#include "gemm/schedule.h"

namespace st::cpu::ST_ISA {

/// The first row and column of a block of C, and the first step along K.
struct BlockOrigin {
  int64_t m, n, k;
};

/// Positions in packed operands are in cells. In an operand that is packed as a whole, K blocks of a block follow each other, then comes
/// the next block.
struct Blocking {
  GemmProblem p;
  TileSchedule s;

  int64_t rows(int64_t m) const { return std::min(s.block_m, p.m - m); }  // of the block that begins at row m
  int64_t columns(int64_t n) const { return std::min(s.block_n, p.n - n); }
  int64_t depth(int64_t k) const { return std::min(s.kc, p.k - k); }  // of the K block that begins at step k
  int64_t end_of_k(int64_t k) const { return std::min(p.k, k + s.block_k); }

  int64_t padded_columns(int64_t columns) const { return micro::kKernelTile.padded_columns(columns); }
  int64_t width_of(int64_t columns) const { return micro::kKernelTile.panel_width(columns); }  // of a panel of B

  int64_t in_packed_a(int64_t m, int64_t k) const { return m * micro::cells_of(p.k) + micro::padded_rows(rows(m)) * micro::cells_of(k); }
  int64_t in_packed_b(int64_t n, int64_t k) const { return n * micro::cells_of(p.k) + padded_columns(columns(n)) * micro::cells_of(k); }
  int64_t in_block_of_a(int64_t m, int64_t k) const { return micro::padded_rows(rows(m)) * micro::cells_of(k % s.block_k); }
  int64_t in_block_of_b(int64_t n, int64_t k) const { return padded_columns(columns(n)) * micro::cells_of(k % s.block_k); }

  /// Number of K blocks of `kc` steps that are packed together with the one at `first`; 1 for an empty K.
  int64_t k_blocks(int64_t first) const { return std::max<int64_t>(1, (end_of_k(first) - first + s.kc - 1) / s.kc); }
  template <class Body>
  void each_k_block(int64_t first, const Body& body) const {
    for (int64_t i = 0; i < k_blocks(first); ++i) body(first + i * s.kc);
  }
};

}  // namespace st::cpu::ST_ISA
