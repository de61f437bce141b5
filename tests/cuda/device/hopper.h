// The same names as runtime/backend/cuda/device/hopper.h. Products are added as those of device/mma.h are.
#pragma once

#include <cstdint>
#include <stdexcept>

#include <device/mma.h>
#include <device/threads.h>

#include "base/error.h"
#include "hopper_engine.h"

#define FIXED

namespace st::cuda {

constexpr int kTileColumns = 64;
constexpr int kGroupThreads = 128;

inline const bool has_proxies = simulated::use_proxies();

using PhaseBarrier = uint64_t;

inline void init_barrier(PhaseBarrier* barrier, int arrivals) { simulated::init_barrier(barrier, arrivals); }
inline void publish_barriers() {}
inline void arrive(PhaseBarrier* barrier, int line = __builtin_LINE()) { simulated::arrive(barrier, 0, line); }
inline void arrive_expecting(PhaseBarrier* barrier, int bytes, int line = __builtin_LINE()) { simulated::arrive(barrier, bytes, line); }
inline void wait_phase(PhaseBarrier* barrier, int parity, int line = __builtin_LINE()) { simulated::wait_phase(barrier, parity, line); }

inline void copy_bulk(void* to, const void* from, int bytes, PhaseBarrier* barrier, int line = __builtin_LINE()) {
  simulated::copy_bulk(to, from, bytes, barrier, line);
}

struct TensorMap {
  const uint16_t* at[1];  // launch.h follows it into the device's memory
  int64_t rows, columns;
  int tile_rows;
};

inline TensorMap make_tensor_map(const void* data, int64_t rows, int64_t columns, int tile_rows) {
  require(reinterpret_cast<uintptr_t>(data) % 16 == 0 && rows > 0 && columns > 0 && columns % 8 == 0 && tile_rows > 0 && tile_rows <= 256,
          Code::internal, "cuda: cuTensorMapEncodeTiled of ", rows, " x ", columns, ", tiles of ", tile_rows, " x ", kTileColumns,
          " returned 1");
  return {{static_cast<const uint16_t*>(data)}, rows, columns, tile_rows};
}

inline void copy_tile(void* to, const TensorMap& map, int column, int row, PhaseBarrier* barrier, int line = __builtin_LINE()) {
  simulated::copy_tile(to, {map.at[0], map.rows, map.columns, map.tile_rows}, column, row, barrier, line);
}

inline void fence_proxy() { simulated::fence_proxy(); }

inline uint64_t tile_descriptor(const void* tile, int line = __builtin_LINE()) { return simulated::tile_descriptor(tile, line); }
constexpr uint64_t kDescriptorStep = 32 >> 4;

inline void begin_products() {}
inline void commit_products() { simulated::commit_products(); }
template <int kPending>
void wait_products(float (&sums)[32], int line = __builtin_LINE()) {
  simulated::wait_products(kPending, sums, line);
}
inline void multiply_tiles(float (&sums)[32], uint64_t a, uint64_t b, bool adds, int line = __builtin_LINE()) {
  simulated::multiply_tiles(sums, a, b, adds, line);
}

}  // namespace st::cuda
