// The part of elementwise kernels that is compiled once for all instruction sets: the walk over the operands, and tails.
#pragma once

#include <string_view>

#include "backend/kernel_side.h"

namespace st::cpu {

/// out[i] = f(a[i], b[i]) for i < n, a multiple of the vector's lanes; an f of one input has no b. Bit k of `moves`: input k advances, else
/// it stays.
using PointwiseRun = void (*)(const void* functor, const void* a, const void* b, unsigned moves, void* out, int64_t n);

struct PointwiseLoop {
  std::string_view op;
  PointwiseRun run = nullptr;  // null: the op is not computed in this dtype
  int64_t lanes = 1;           // elements per vector, a power of two
};

/// Runs the loop over all elements of call.out[0]. One input has its shape and dtype; two have its dtype and broadcast to it.
void run_pointwise(const Call& call, size_t inputs, const PointwiseLoop& loop, const void* functor);

}  // namespace st::cpu
