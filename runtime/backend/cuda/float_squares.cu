#include "backend/cuda/float_squares.cuh"

#include "backend/cuda/float_squares.h"

namespace st::cuda {

void enqueue_float_squares(StreamHandle stream, const float* x, int64_t elements, double* sums) {
  launch(stream, {square_chunks(elements), kBlock}, square_floats, x, elements, sums);
}

}  // namespace st::cuda
