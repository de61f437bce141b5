// average: a = a + (1 - decay) (w - a), at the first update a = w, with the cpu's bits: rounded after each operation.
#pragma once

#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/index_faults.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

template <class P>
DEVICE P averaged(P take, P value, P average) {
  return plus(times(take, plus(value, -average)), average);
}

/// `rates`: as of the optimizer ops.
template <class P>
KERNEL(kBlock)
average_elements(IndexFaults faults, P take, const uint8_t* skip, const double* rates, const P* value, P* average, int64_t elements) {
  constexpr int kEach = static_cast<int>(16 / sizeof(P));
  if (*skip != 0 || has_fault(faults)) return;
  const bool is_first = rates[1] == 1;
  const int64_t first = (int64_t{block_index()} * kBlock + thread_index()) * kEach;
  if (first + kEach <= elements) {
    auto made = load_vector<Vector<P, kEach>>(value + first);
    if (!is_first) {
      const auto before = load_vector<Vector<P, kEach>>(average + first);
      for (int i = 0; i < kEach; ++i) made.at[i] = averaged(take, made.at[i], before.at[i]);
    }
    return store_vector(average + first, made);
  }
  for (int64_t i = first; i < elements; ++i) average[i] = is_first ? value[i] : averaged(take, value[i], average[i]);
}

}  // namespace st::cuda
