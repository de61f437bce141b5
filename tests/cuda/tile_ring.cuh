// Kernels for the tests of Hopper's wrappers (device/hopper.h), and the same with a fault: tiles that a producer copies into a ring while a
// warp group multiplies those before, and tiles that threads store themselves.
#pragma once

#include <device/hopper.h>

namespace st::cuda {

enum class TileFault { none, no_full_wait, early_release, wrong_bytes, no_proxy_fence, no_tile_barrier, early_sums };

constexpr int kRingStages = 2, kRingRows = 64, kRingThreads = kGroupThreads + kLanes;

struct alignas(1024) RingTile {
  uint16_t at[kRingRows * kTileColumns];
};

/// Stores a thread's sums of multiply_tiles() into c [64, 64].
DEVICE void store_sums(const float (&sums)[32], float* c) {
  const int row = thread_index() / kLanes * 16 + thread_index() % kLanes / 4, column = thread_index() % 4 * 2;
  for (int i = 0; i < 32; ++i) c[(row + i / 2 % 2 * 8) * 64 + column + i / 4 * 8 + i % 2] = sums[i];
}

DEVICE void multiply_ring_tiles(float (&sums)[32], const RingTile* a, const RingTile* b, bool adds) {
  const uint64_t of_a = tile_descriptor(a), of_b = tile_descriptor(b);
  UNROLL
  for (uint64_t i = 0; i < 4; ++i) multiply_tiles(sums, of_a + i * kDescriptorStep, of_b + i * kDescriptorStep, adds || i > 0);
}

/// c [64, 64] = a b^T for matrices of 64 rows and 64 `steps` columns.
template <TileFault kFault>
KERNEL(kRingThreads)
multiply_by_ring(const FIXED TensorMap a, const FIXED TensorMap b, float* c, int steps) {
  SHARED(RingTile, of_a, kRingStages);
  SHARED(RingTile, of_b, kRingStages);
  SHARED(PhaseBarrier, full, kRingStages);
  SHARED(PhaseBarrier, empty, kRingStages);
  if (thread_index() == 0) {
    for (int stage = 0; stage < kRingStages; ++stage) {
      init_barrier(full + stage, 1);
      init_barrier(empty + stage, 1);
    }
    publish_barriers();
  }
  sync_block();
  if (thread_index() >= kGroupThreads) {
    if (thread_index() > kGroupThreads) return;
    for (int step = 0; step < steps; ++step) {
      const int stage = step % kRingStages, round = step / kRingStages;
      wait_phase(empty + stage, round % 2 ^ 1);
      arrive_expecting(full + stage, static_cast<int>(sizeof(RingTile)) * (kFault == TileFault::wrong_bytes ? 1 : 2));
      copy_tile(of_a + stage, a, step * kTileColumns, 0, full + stage);
      copy_tile(of_b + stage, b, step * kTileColumns, 0, full + stage);
    }
    return;
  }
  float sums[32];
  for (int step = 0; step < steps; ++step) {
    const int stage = step % kRingStages, round = step / kRingStages;
    if (kFault != TileFault::no_full_wait || step != 1) wait_phase(full + stage, round % 2);
    begin_products();
    multiply_ring_tiles(sums, of_a + stage, of_b + stage, step > 0);
    commit_products();
    if constexpr (kFault != TileFault::early_release) wait_products<0>(sums);
    if (thread_index() == 0) arrive(empty + stage);
    if constexpr (kFault == TileFault::early_release) wait_products<0>(sums);
  }
  store_sums(sums, c);
}

/// The same of matrices of 64 columns, by tiles that the threads store.
template <TileFault kFault>
KERNEL(kGroupThreads)
multiply_stored(const uint16_t* a, const uint16_t* b, float* c) {
  SHARED(RingTile, of_a, 1);
  SHARED(RingTile, of_b, 1);
  for (int i = thread_index(); i < kRingRows * kTileColumns; i += kGroupThreads) {
    const int row = i / kTileColumns, column = i % kTileColumns, place = row * kTileColumns + ((column / 8 ^ row % 8) * 8 + column % 8);
    of_a->at[place] = a[i];
    of_b->at[place] = b[i];
  }
  if constexpr (kFault != TileFault::no_proxy_fence) fence_proxy();
  if constexpr (kFault != TileFault::no_tile_barrier) sync_block();
  float sums[32];
  begin_products();
  multiply_ring_tiles(sums, of_a, of_b, false);
  commit_products();
  wait_products<kFault == TileFault::early_sums ? 1 : 0>(sums);
  store_sums(sums, c);
}

}  // namespace st::cuda
