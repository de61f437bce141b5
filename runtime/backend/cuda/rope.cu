#include "backend/cuda/rope.cuh"

#include "backend/cuda/enqueue.h"
#include "backend/cuda/pointwise_launch.h"

namespace st::cuda {

void enqueue_rope(const KernelQueue& queue, Op op, const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  const int64_t steps = x.shape[1], heads = x.shape[2], half = x.shape[3] / 2;
  if (x.elements() == 0) return;
  const Rotation rotation = {.base = call.attrs->real("base"),
                             .direction = call.attrs->flag("inverse") ? -1.0 : 1.0,
                             .offset = static_cast<double>(call.attrs->integer("offset")),
                             .half = half};
  with_floating(op, y.dtype, [&](auto t) {
    using T = decltype(t);
    using C = Compute<T>;
    auto* const table = pointer_to<C>(call.workspace);
    const int64_t pairs = steps * half, groups = x.shape[0] * steps * heads * ((half + kRopePairs - 1) / kRopePairs);
    launch(queue.stream, {blocks_for(pairs, 1), kBlock}, make_rope_table<C>, rotation, table, pairs);
    launch(queue.stream, {blocks_for(groups, 1), kBlock}, rotate_elements<T>, table, as<const T>(x), as<T>(y), half, heads, steps, groups);
  });
}

}  // namespace st::cuda
