// Kernels that call each wrapper of <device/..>, but for those of hopper_kernels.cu.
#pragma once

#include <cstdint>

#include <device/access.h>
#include <device/mma.h>
#include <device/outer.h>
#include <device/round.h>
#include <device/threads.h>

namespace st::cuda {

struct alignas(16) Chunk16 {
  uint16_t at[8];
};

KERNEL(64) shuffle_each(const float* x, float* y) {
  const int thread = thread_index();
  for (int i = 0; i < 5; ++i) y[thread * 5 + i] = shuffle_xor(x[thread], 1 << i);
}

/// counts: the number of threads, then that of blocks; least: the smallest of x; last: one of x, whole.
KERNEL(64) count_and_compare(const uint64_t* x, unsigned* counts, uint64_t* least, uint64_t* last) {
  const int i = block_index() * block_threads() + thread_index();
  atomic_add(counts, 1);
  if (thread_index() == 0) atomic_add(counts + 1, 1);
  atomic_min(least, x[i]);
  atomic_set(last, x[i]);
}

KERNEL(kLanes) round_pairs(const float* x, uint32_t* bf16, uint32_t* f16, int pairs) {
  for (int i = thread_index(); i < pairs; i += kLanes) {
    bf16[i] = bf16_pair_of(x[2 * i], x[2 * i + 1]);
    f16[i] = f16_pair_of(x[2 * i], x[2 * i + 1]);
  }
}

KERNEL(kLanes) widen(const uint16_t* x, float* y, int elements) {
  for (int i = thread_index(); i < elements; i += kLanes) y[i] = cuda::f32_of_f16(x[i]);
}

/// sums [4, 4] += a [4] b [4] of each thread.
KERNEL(kLanes) add_outer(const float* a, const float* b, float* sums) {
  const int thread = thread_index();
  float of_a[4], of_b[4], of_sums[4][4];
  for (int i = 0; i < 4; ++i) {
    of_a[i] = a[thread * 4 + i];
    of_b[i] = b[thread * 4 + i];
    for (int j = 0; j < 4; ++j) of_sums[i][j] = sums[thread * 16 + i * 4 + j];
  }
  add_outer_product(of_sums, of_a, of_b);
  for (int i = 0; i < 16; ++i) sums[thread * 16 + i] = of_sums[i / 4][i % 4];
}

/// x [32, 8]: four matrices. y [2, 32, 4]: each lane's registers, as they are and transposed.
KERNEL(kLanes) load_both_ways(const uint16_t* x, uint32_t* y) {
  SHARED(Chunk16, rows, kLanes);
  const int lane = thread_index();
  rows[lane] = load_vector<Chunk16>(x + lane * 8);
  sync_block();
  uint32_t straight[4], transposed[4];
  load_matrices<false>(straight, [&](int row) { return rows + row; });
  load_matrices<true>(transposed, [&](int row) { return rows + row; });
  for (int i = 0; i < 4; ++i) {
    y[lane * 4 + i] = straight[i];
    y[(kLanes + lane) * 4 + i] = transposed[i];
  }
}

/// A block adds the product of a [16, 16] and b^T of b [8, 16] to sums [16, 8].
template <Half kType>
KERNEL(kLanes)
multiply_once(const uint16_t* a, const uint16_t* b, float* sums) {
  a += block_index() * 256;
  b += block_index() * 128;
  sums += block_index() * 128;
  const int g = thread_index() / 4, t = thread_index() % 4;
  const auto pair = [&](const uint16_t* row, int k) { return row[k] | uint32_t{row[k + 1]} << 16; };
  uint32_t of_a[1][4], of_b[1][2];
  float of_sums[1][1][4];
  for (int i = 0; i < 4; ++i) of_a[0][i] = pair(a + (g + i % 2 * 8) * 16, 2 * t + i / 2 * 8);
  for (int i = 0; i < 2; ++i) of_b[0][i] = pair(b + g * 16, 2 * t + i * 8);
  for (int i = 0; i < 4; ++i) of_sums[0][0][i] = sums[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  multiply_add<kType>(of_sums, of_a, of_b);
  for (int i = 0; i < 4; ++i) sums[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = of_sums[0][0][i];
}

/// y [32, 8]: of each thread's 8 elements the first thread % 9, then zeros; the copies of two groups are waited for one after the other.
KERNEL(kLanes) copy_parts(const uint16_t* x, uint16_t* y) {
  SHARED(Chunk16, parts, 2 * kLanes);
  const int thread = thread_index();
  copy_async(parts + thread, x + thread * 8, thread % 9 * 2);
  commit_copies();
  copy_async(parts + kLanes + thread, x + thread * 8, 16);
  commit_copies();
  wait_copies<1>();
  store_vector(y + thread * 8, parts[thread]);
  wait_copies<0>();
  sync_block();
  store_vector(y + (kLanes + thread) * 8, parts[kLanes + (thread + 1) % kLanes]);
}

/// Launched by one probe alone.
KERNEL(64) count_threads(unsigned* count) { atomic_add(count, 1); }

}  // namespace st::cuda
