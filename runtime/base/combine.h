// The arithmetic of reductions: terms of one element type, sums in a wider one, rounded once.
//
// Sums are fp32 for f32, bf16 and f16; fp64 for f64; 64-bit integers, which wrap around, for integers. Max and min propagate NaN, as
// torch's do. Pointers need no alignment; the ranges do not overlap. Called in the library's floating-point mode.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/reduce_op.h"

namespace st {

/// Bytes of one sum.
int64_t sum_bytes_of(DType dtype, SumType sums = SumType::wide);

/// sums[i] = piece[i]
void widen(DType dtype, const std::byte* piece, std::byte* sums, int64_t n);
/// sums[i] = sums[i] op piece[i]; mean adds.
void combine(DType dtype, ReduceOp op, const std::byte* piece, std::byte* sums, int64_t n);
/// sums[i] = sums[i] + piece[i], rounded to `dtype`, a float's: the sums are numbers of that type, in the wider one.
void combine_rounded(DType dtype, const std::byte* piece, std::byte* sums, int64_t n);
/// sums[i] /= count. Floating types only.
void divide(DType dtype, int count, std::byte* sums, int64_t n);
/// to[i] = sums[i], rounded to nearest even; integers keep their low bits.
void narrow(DType dtype, const std::byte* sums, std::byte* to, int64_t n);

}  // namespace st
