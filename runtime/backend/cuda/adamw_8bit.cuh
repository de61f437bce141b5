// adamw with 8-bit moments (backend/moment_codes.h), with the cpu's bits: a block of threads has a block of 256 elements, one a thread. It
// decodes both moments, updates the parameter with the new ones, and encodes these relative to the largest of the block.
#pragma once

#include <cmath>
#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/block_reduce.cuh"
#include "backend/cuda/doubles.cuh"
#include "backend/cuda/index_faults.cuh"
#include "backend/cuda/update.cuh"
#include "backend/cuda/update_numbers.h"
#include "backend/cuda/vectors.cuh"
#include "backend/moment_codes.h"
#include "ir/optimizer_state.h"

namespace st::cuda {

static_assert(kMomentBlock == kBlock);

/// The values of the codes.
struct CodeValues {
  float of_signed[256], of_unsigned[256];
};

/// x relative to the largest of its block, in [-1, 1].
DEVICE float share_of_largest(float x, float largest) {
  // Beyond 2^126, 1 / largest would be below the normal range.
  const float down = largest > 0x1p125F ? 0x1p-4F : 1;
  const float by = largest > 0 ? 1 / (largest * down) : 0;
  const float share = x * down * by, raised = share < -1 ? -1 : share;
  return raised > 1 ? 1 : raised;
}

KERNEL(kBlock)
update_adamw_8bit(IndexFaults faults, const UpdateNumbers* numbers, const float* factor, const uint8_t* skip, UpdateTypes types,
                  const void* gradient, float* parameter, uint8_t* codes1, float* scales1, uint8_t* codes2, float* scales2, void* copy,
                  int64_t elements, CodeValues values) {
  SHARED(float, of_signed, kBlock);
  SHARED(float, of_unsigned, kBlock);
  if (*skip != 0 || has_fault(faults)) return;
  of_signed[thread_index()] = values.of_signed[thread_index()];
  of_unsigned[thread_index()] = values.of_unsigned[thread_index()];
  sync_block();
  const int64_t at = int64_t{block_index()} * kBlock + thread_index();
  const bool is_here = at < elements;
  const UpdateNumbers n = *numbers;
  float m = 0, v = 0;
  if (is_here) {
    float stored[1];
    load_gradient<1>(stored, gradient, types.gradient, at);
    const float g = held(stored[0] * *factor, n.most);
    m = fused(n.keep1, of_signed[codes1[at]] * scales1[block_index()], n.take1 * g);
    v = fused(n.keep2, of_unsigned[codes2[at]] * scales2[block_index()], n.take2 * g * g);
    const float denominator = fused(root(v), n.unbias2, n.epsilon);
    const Vector<float, 1> p = {{decayed(parameter[at], n.shrink, n.step, m / denominator)}};
    parameter[at] = p.at[0];
    if (copy != nullptr) types.copy == DType::bf16 ? store_narrow<1, Bf16>(copy, at, p) : store_narrow<1, F16>(copy, at, p);
  }
  float largest[2] = {magnitude(m), v};
  reduce_over<kBlock>(largest, Largest{});
  if (!is_here) return;
  codes1[at] = moment_codes::encode_signed(share_of_largest(m, largest[0]));
  codes2[at] = moment_codes::encode_unsigned(share_of_largest(v, largest[1]));
  if (thread_index() != 0) return;
  scales1[block_index()] = largest[0];
  scales2[block_index()] = largest[1];
}

}  // namespace st::cuda
