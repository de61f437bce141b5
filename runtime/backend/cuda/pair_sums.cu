#include "backend/cuda/pair_sums.cuh"

#include "backend/cuda/pair_sums.h"

namespace st::cuda {

void enqueue_pair_sums(StreamHandle stream, const double* pairs, int64_t count_of_pairs, double* sum, double* count) {
  launch(stream, {1, kBlock}, add_pairs, pairs, count_of_pairs, sum, count);
}

}  // namespace st::cuda
