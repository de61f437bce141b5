// How a reduction combines the terms of ranks.
#pragma once

#include <cstdint>

namespace st {

/// mean: the sum, divided by the number of ranks in fp32 (f64: fp64) before it is rounded; floating types only.
enum class ReduceOp : int32_t { sum = 1, mean, max, min };

/// The type in which a sum is kept. wide: f32, f64 of f64 terms, i64 of integers; own: that of its terms, floats, to which each addition
/// is rounded.
enum class SumType : int32_t { wide, own };

}  // namespace st
