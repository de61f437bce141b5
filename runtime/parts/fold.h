// One micro-batch's gradient folded onto a step's sum: read where the host has it, and at the boundary written there.
#pragma once

#include <cstddef>

#include "base/workers.h"
#include "parts/gradient_array.h"

namespace st {

/// What to do with a piece.
struct Fold {
  bool first = false;  // the sum is this piece: nothing was there before
  bool empty = false;  // of no tokens: the piece is not looked at; never the first
  bool last = false;   // the sum, times `factor`, goes into the array, and none is kept
  double factor = 1;   // rounded to fp32 first but for f64
};

/// What the sum of an array takes: fp32 elements, of f64 fp64.
int64_t sum_bytes(const GradientArray& array);

/// One addition an element, rounded to the sum's type, as the op `accumulate`: its bits. The last is multiplied and rounded once to the
/// array's type. One pass; allocates nothing; the same bits for any threads. The array is f32, f64, bf16 or f16.
void fold(const GradientArray& array, std::byte* sum, const Fold& how, Workers& workers);

}  // namespace st
