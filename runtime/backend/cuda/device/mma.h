// Tensor cores, and copies to shared memory that a thread does not wait for. The layouts of fragments are PTX ISA's, "Matrix Fragments for
// mma.m16n8k16 with floating point type": of lane 4 g + t, with elements of 16 bits in pairs along K,
//   a[0..3]     rows g, g + 8, g, g + 8 and k = 2 t (the first two), 2 t + 8
//   b[0..1]     column g and k = 2 t, 2 t + 8
//   sums[0..3]  rows g, g, g + 8, g + 8 and columns 2 t, 2 t + 1, 2 t, 2 t + 1
#pragma once

#include <cstdint>

#include <device/threads.h>

namespace st::cuda {

/// Types of elements with 16 bits.
enum class Half { bf16, f16 };

/// sums += a b for kRows x kColumns blocks of 16 x 8 and 16 of K, by a whole warp. Products are exact; the device cuts them and the sum to
/// 2 bits more than the largest one's fp32 has, adds them, and cuts the result to fp32 (an H100's bits: tests/gpu/tensor_core.h), so errors
/// of long sums add up. Numbers below the normal range count.
template <Half kType, int kRows, int kColumns>
DEVICE void multiply_add(float (&sums)[kRows][kColumns][4], const uint32_t (&a)[kRows][4], const uint32_t (&b)[kColumns][2]) {
  UNROLL
  for (int i = 0; i < kRows; ++i) {
    UNROLL
    for (int j = 0; j < kColumns; ++j) {
      float(&d)[4] = sums[i][j];
      if constexpr (kType == Half::bf16) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
      } else {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
      }
    }
  }
}

DEVICE unsigned shared_address(const void* place) { return static_cast<unsigned>(__cvta_generic_to_shared(place)); }

/// Four matrices of 8 x 8 elements of 16 bits from shared memory, by a whole warp: row_of(8 i + r) is the place of row r of matrix i,
/// aligned to 16 bytes. Lane 4 g + t gets elements 2 t and 2 t + 1 of row g of each; kTransposed: of column g.
template <bool kTransposed, class RowOf>
DEVICE void load_matrices(uint32_t (&to)[4], const RowOf& row_of) {
  const unsigned row = shared_address(row_of(thread_index() & (kLanes - 1)));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
  }
}

/// Begins to copy 16 bytes from memory to shared memory, of which those from `bytes` on are zeros; both places are aligned to 16 bytes.
/// This thread sees the copy after it has waited for it, the others after a barrier too.
DEVICE void copy_async(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}
/// The thread's copies since the last call are a group, perhaps of none.
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for all groups of the thread but the last kPending.
template <int kPending>
DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace st::cuda
