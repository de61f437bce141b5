// The operands of one product as packed panels.
#pragma once

#include "backend/cpu/gemm/blocking.h"
#include "base/workers.h"

namespace st::cpu::ST_ISA {

struct Panels {
  Blocking cut;
  const void *a = nullptr, *b = nullptr;                       // the operands
  micro::Cell *block_a = nullptr, *block_b = nullptr;          // buffers for a block of each
  const micro::Cell *packed_a = nullptr, *packed_b = nullptr;  // packed as a whole in advance, or null

  /// The panels of the K block at k.
  const micro::Cell* of_a(int64_t m, int64_t k) const {
    return packed_a != nullptr ? packed_a + cut.in_packed_a(m, k) : block_a + cut.in_block_of_a(m, k);
  }
  const micro::Cell* of_b(int64_t n, int64_t k) const {
    return packed_b != nullptr ? packed_b + cut.in_packed_b(n, k) : block_b + cut.in_block_of_b(n, k);
  }

  /// Panels first .. last - 1 of the block at m, and of the K block at k. `to`: where the block's first panel is or would be.
  void pack_rows_of_a(int64_t m, int64_t k, int64_t first, int64_t last, micro::Cell* to) const;
  void pack_columns_of_b(int64_t n, int64_t k, int64_t first, int64_t last, micro::Cell* to) const;

  void pack_all_a(micro::Cell* to, Workers& workers) const;
  void pack_all_b(micro::Cell* to, Workers& workers) const;
};

constexpr int64_t kPanelsPerPackTask = micro::kPairs ? 8 : 4;

}  // namespace st::cpu::ST_ISA
