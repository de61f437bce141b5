// How the sums of products over a long K are cut (README.md, "Cut sums").
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace st::cuda {

/// Elements of K whose blocks are added one after the other, from zero. The sums of such slices are then added in a second sum.
constexpr int kSumSlice = 4096;

/// Whether there are several: a function of K and of the type of the result, whose 16 bits show no error of longer sums in fp32.
inline bool has_slices(int64_t k, DType result) { return k > kSumSlice && bytes_of(result) > 2; }

}  // namespace st::cuda
