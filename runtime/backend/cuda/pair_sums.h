// The sum and the count of a loss from the terms of its rows or blocks.
#pragma once

#include <cstdint>

#include <device/launch.h>

namespace st::cuda {

constexpr int64_t kPairBytes = 16;  // of a term: what it adds to the sum and to the count, f64

/// Adds the pairs in an order that depends on their number only.
void enqueue_pair_sums(StreamHandle stream, const double* pairs, int64_t count_of_pairs, double* sum, double* count);

}  // namespace st::cuda
