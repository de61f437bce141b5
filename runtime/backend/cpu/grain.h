// How work is cut into tasks and partial sums: the same for every instruction set, and for what kernels need of memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/dtype.h"

namespace st::cpu {

constexpr int64_t kGrain = 16384;  // elements per task of an elementwise kernel: about 10 us; three arrays of it fit in L2
constexpr int64_t kRowBlock = 32;  // rows added into one partial sum of a column reduction

constexpr int64_t tasks_of(int64_t elements) { return (elements + kGrain - 1) / kGrain; }
constexpr int64_t row_blocks(int64_t rows) { return (rows + kRowBlock - 1) / kRowBlock; }
constexpr int64_t bytes_of_compute(DType dtype) { return dtype == DType::f64 ? 8 : 4; }

}  // namespace st::cpu
