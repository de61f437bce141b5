// Packing of pairs and of tiles, a store of bf16, and tile kernels: only the sets for bf16 products have them. The other sets declare them,
// for code that `if constexpr` discards there.
#pragma once

#include "backend/cpu/gemm/cells.h"
#include "backend/cpu/gemm/pack.h"
#if defined(ST_BF16_PAIRS)
#include "backend/cpu/gemm/bf16_store.h"
#include "backend/cpu/gemm/pack_pairs.h"
#endif
#if defined(ST_BF16_TILES)
#include "backend/cpu/gemm/pack_tiles.h"
#include "backend/cpu/gemm/tiles.h"
#endif

namespace st::cpu::ST_ISA::micro {

#if !defined(ST_BF16_PAIRS)
void store_bf16(Lanes low, Lanes high, bf16* to);
#endif
#if !defined(ST_BF16_TILES)
void pack_tiles(const PanelSource<bf16>& from, int64_t valid, int64_t width, int64_t k, Cell* to);

struct TileRegisters {
  explicit TileRegisters(int64_t /*task_rows*/) {}
};
#endif

}  // namespace st::cpu::ST_ISA::micro
