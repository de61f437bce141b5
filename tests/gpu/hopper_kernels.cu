#include "hopper_kernels.h"

#include <device/access.h>
#include <device/threads.h>

#include "base/error.h"

namespace st {
namespace cuda {
namespace {

struct alignas(16) BulkChunk {
  uint16_t at[8];
};

KERNEL(kLanes) copy_twice(const uint16_t* x, uint16_t* y, uint16_t* again) {
  SHARED(BulkChunk, parts, kLanes);
  SHARED(PhaseBarrier, copied, 1);
  const int thread = thread_index();
  constexpr int kBytes = static_cast<int>(sizeof(BulkChunk)) * kLanes;
  if (thread == 0) {
    init_barrier(copied, 2);
    publish_barriers();
  }
  sync_block();
  if (thread == 0) {
    arrive_expecting(copied, kBytes);
    copy_bulk(parts, x, kBytes / 2, copied);
    copy_bulk(parts + kLanes / 2, x + kLanes * 4, kBytes / 2, copied);
  }
  if (thread == 1) arrive(copied);
  wait_phase(copied, 0);
  store_vector(y + thread * 8, parts[thread]);
  sync_block();
  if (thread == 0) {
    arrive_expecting(copied, kBytes / 2);
    copy_bulk(parts + kLanes / 2, x, kBytes / 2, copied);
    arrive(copied);
  }
  wait_phase(copied, 1);
  store_vector(again + thread * 8, parts[thread]);
}

}  // namespace
}  // namespace cuda

namespace probes {

using namespace cuda;

void copy_by_engine(StreamHandle stream, const uint16_t* x, uint16_t* y, uint16_t* again) {
  launch(stream, {1, kLanes}, copy_twice, x, y, again);
}

void multiply_by_ring(StreamHandle stream, TileFault fault, const Product& of, int rows, int columns, int steps) {
  const auto give = [&](auto kernel) {
    launch(stream, {1, kRingThreads}, kernel, make_tensor_map(of.a, rows, columns, kRingRows),
           make_tensor_map(of.b, rows, columns, kRingRows), of.c, steps);
  };
  switch (fault) {
    case TileFault::none:
      return give(cuda::multiply_by_ring<TileFault::none>);
    case TileFault::no_full_wait:
      return give(cuda::multiply_by_ring<TileFault::no_full_wait>);
    case TileFault::early_release:
      return give(cuda::multiply_by_ring<TileFault::early_release>);
    case TileFault::wrong_bytes:
      return give(cuda::multiply_by_ring<TileFault::wrong_bytes>);
    default:
      fail(Code::internal, "multiply_by_ring has no such fault");
  }
}

void multiply_stored(StreamHandle stream, TileFault fault, const Product& of) {
  const auto give = [&](auto kernel) { launch(stream, {1, kGroupThreads}, kernel, of.a, of.b, of.c); };
  switch (fault) {
    case TileFault::none:
      return give(cuda::multiply_stored<TileFault::none>);
    case TileFault::no_proxy_fence:
      return give(cuda::multiply_stored<TileFault::no_proxy_fence>);
    case TileFault::no_tile_barrier:
      return give(cuda::multiply_stored<TileFault::no_tile_barrier>);
    default:
      fail(Code::internal, "multiply_stored has no such fault");
  }
}

}  // namespace probes
}  // namespace st
