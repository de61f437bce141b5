// Adds one micro-batch's gradient to a step's sum: reads it in the host's array and, at the end of a step, writes the result there.
#pragma once

#include <cstddef>

#include "base/workers.h"
#include "parts/gradient_array.h"

namespace st {

/// How to add a gradient.
struct Fold {
  bool first = false;  // writes the sum instead of adding to it
  bool empty = false;  // no tokens: ignores the gradient; never the first
  bool last = false;   // writes the sum times `factor` into the array and keeps no sum
  double factor = 1;   // rounded to fp32 first, except for f64
};

/// Bytes of an array's sum: fp32 elements, fp64 for f64.
int64_t sum_bytes(const GradientArray& array);

/// One addition per element, rounded to the sum's type: bitwise the op `accumulate`. The last result is multiplied and rounded once to the
/// array's type. One pass; allocates nothing; the same bits for any number of threads. The array is f32, f64, bf16 or f16.
void fold(const GradientArray& array, std::byte* sum, const Fold& how, Workers& workers);

}  // namespace st
