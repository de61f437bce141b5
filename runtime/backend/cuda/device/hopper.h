// Instructions of Hopper alone (sm_90a): barriers that count bytes, copies that the device's copy engine makes, products of a warp group
// from shared memory. No kernel of the library includes this yet: a file that does is compiled for compute_90a. The copy engine and the
// products access memory by the asynchronous proxy: the stores of threads before it need fence_proxy().
//
// A tile is up to 256 rows of 64 bf16 in shared memory, aligned to 1024 bytes: row r is at 128 r, and its chunk c of 16 bytes at
// 16 (c ^ r % 8). This is CUDA's 128-byte swizzle, which copy_tile() makes and multiply_tiles() reads.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include <device/mma.h>
#include <device/threads.h>
#include "backend/cuda/runtime_status.h"
#include "base/error.h"

/// Marks a kernel's parameter that stays where the launch has put it: const FIXED TensorMap name.
#define FIXED __grid_constant__

namespace st::cuda {

constexpr int kTileColumns = 64;    // elements of a row
constexpr int kGroupThreads = 128;  // a warp group: four warps, the first thread's index is a multiple of this

/// Counts arrivals of threads and bytes of copies. A phase passes when none of either is to come; then the next one begins. Phases have the
/// parities 0, 1, 0, ..
using PhaseBarrier = uint64_t;

/// By one thread; the others use it after publish_barriers() by this thread and sync_block().
DEVICE void init_barrier(PhaseBarrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
/// The copy engine sees this thread's barriers.
DEVICE void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Who waits for the phase sees what this thread wrote.
DEVICE void arrive(PhaseBarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// Arrives; the phase waits for `bytes` of copies too.
DEVICE void arrive_expecting(PhaseBarrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}
/// Until the phase of this parity, the current one or the one before, has passed. On a new barrier parity 1 has passed.
DEVICE void wait_phase(PhaseBarrier* barrier, int parity) {
  uint32_t has_passed;
  do {
    asm volatile(
        "{\n.reg .pred passed;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 passed, [%1], %2;\n"
        "selp.u32 %0, 1, 0, passed;\n}"
        : "=r"(has_passed)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (has_passed == 0);
}

/// One thread gives the copy engine `bytes` to copy to shared memory, a multiple of 16 from and to such an address; they count at the
/// barrier.
DEVICE void copy_bulk(void* to, const void* from, int bytes, PhaseBarrier* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

/// A matrix of bf16 in memory, of which tiles are copied.
using TensorMap = CUtensorMap;

/// Rows are one after the other, from `data` on, aligned to 16 bytes; columns: a multiple of 8; tile_rows: at most 256. The driver makes
/// it, no device is needed.
inline TensorMap make_tensor_map(const void* data, int64_t rows, int64_t columns, int tile_rows) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  must(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result),
       "cudaGetDriverEntryPointByVersion");
  require(found != nullptr, Code::unavailable, "cuda: the driver has no cuTensorMapEncodeTiled");
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)}, stride = sizes[0] * sizeof(uint16_t);
  const cuuint32_t tile[] = {kTileColumns, static_cast<cuuint32_t>(tile_rows)}, steps[] = {1, 1};
  TensorMap map;
  const CUresult made = reinterpret_cast<decltype(&::cuTensorMapEncodeTiled)>(found)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), sizes, &stride, tile, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  require(made == CUDA_SUCCESS, Code::internal, "cuda: cuTensorMapEncodeTiled of ", rows, " x ", columns, ", tiles of ", tile_rows, " x ",
          kTileColumns, " returned ", static_cast<int>(made));
  return map;
}

/// As copy_bulk(), a tile from `column` and `row` on; elements outside the matrix are zeros, and count.
DEVICE void copy_tile(void* to, const TensorMap& map, int column, int row, PhaseBarrier* barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                   shared_address(to)),
               "l"(&map), "r"(shared_address(barrier)), "r"(column), "r"(row)
               : "memory");
}

/// The asynchronous proxy sees what this thread wrote to shared memory, or has seen of others.
DEVICE void fence_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Names a tile to multiply_tiles(). K's columns 16 i on are at the descriptor + kDescriptorStep i.
DEVICE uint64_t tile_descriptor(const void* tile) {
  constexpr uint64_t kEightRows = 1024, kSwizzle128 = 1;
  return (shared_address(tile) & 0x3FFFF) >> 4 | uint64_t{1} << 16 | kEightRows >> 4 << 32 | kSwizzle128 << 62;
}
constexpr uint64_t kDescriptorStep = 32 >> 4;

/// Before the first product, and after sums were written.
DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// The group's products since the last call are under way.
DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Until only the last kPending committed ones are: the others' tiles may be written, and `sums`, to which none of the last adds, read.
/// They are operands of the wait, so that the compiler moves no arithmetic on them before it.
template <int kPending>
DEVICE void wait_products(float (&sums)[32]) {
  asm volatile("wgmma.wait_group.sync.aligned %32;"
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]), "+f"(sums[7]),
                 "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]), "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]),
                 "+f"(sums[15]), "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]),
                 "+f"(sums[22]), "+f"(sums[23]), "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]),
                 "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31])
               : "n"(kPending)
               : "memory");
}

/// By a whole warp group: sums = a b^T, + sums if `adds`, for tiles of 64 rows and 16 of their columns. Thread t of the group has in
/// sums[i] row t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8, column i / 4 * 8 + t % 4 * 2 + i % 2. Adds as multiply_add() does (mma.h).
DEVICE void multiply_tiles(float (&sums)[32], uint64_t a, uint64_t b, bool adds) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, adds, 1, 1, 0, 0;\n}"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]), "+f"(sums[7]),
        "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]), "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15]),
        "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19]), "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23]),
        "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27]), "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31])
      : "l"(a), "l"(b), "r"(adds ? 1 : 0));
}

}  // namespace st::cuda
