#include "backend/cuda/argmax.cuh"

#include "backend/cuda/element_types.h"
#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"

namespace st::cuda {

void enqueue_argmax(const KernelQueue& queue, Op op, const Call& call) {
  const Shape& shape = call.in[0].shape;
  const int32_t axis = normalize_axis(name_of(op), call.attrs->integer("axis"), shape.rank());
  const int64_t n = shape[axis], inner = shape.elements(axis + 1, shape.rank()), lines = shape.elements(0, axis) * inner;
  int32_t* const y = as<int32_t>(call.out[0]);
  with_floating(op, call.in[0].dtype, [&](auto t) {
    using T = decltype(t);
    const T* const x = as<const T>(call.in[0]);
    if (inner != 1) return launch(queue.stream, {blocks_for(lines, 1), kBlock}, argmax_lines<T>, x, lines, n, inner, y);
    const Group group = group_for(n * static_cast<int64_t>(sizeof(T)));
    launch(queue.stream, {blocks_for_rows(lines, group), kBlock}, argmax_rows<T>, group, x, lines, n, y);
  });
}

}  // namespace st::cuda
