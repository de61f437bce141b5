#include "backend/cuda/gather.cuh"

#include "backend/cuda/element_types.h"
#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"

namespace st::cuda {
namespace {

GatherLines lines_of(Op op, const Attrs& attrs, const Shape& index, const Shape& x) {
  const int32_t axis = normalize_axis(name_of(op), attrs.integer("axis"), index.rank());
  return {index.elements(0, axis), index[axis], x[axis], index.elements(axis + 1, index.rank())};
}

}  // namespace

void enqueue_gather(const KernelQueue& queue, Op op, const Call& call) {
  const Operand &x = call.in[0], &index = call.in[1], &y = call.out[0];
  const GatherLines lines = lines_of(op, *call.attrs, index.shape, x.shape);
  with_bits_of(y.dtype, [&](auto bits) {
    using Bits = decltype(bits);
    launch(queue.stream, {blocks_for(y.elements(), 1), kBlock}, gather_elements<Bits>, queue.faults, lines, as<const Bits>(x),
           indices(index), as<Bits>(y), y.elements());
  });
}

void enqueue_gather_backward(const KernelQueue& queue, Op op, const Call& call) {
  const Operand &index = call.in[0], &dy = call.in[1], &dx = call.out[0];
  const GatherLines lines = lines_of(op, *call.attrs, index.shape, dx.shape);
  with_floating(op, dx.dtype, [&](auto t) {
    using T = decltype(t);
    using C = Compute<T>;
    const bool is_half = bytes_of(dx.dtype) == 2;  // 16-bit floats are summed in fp32, in the workspace
    auto* const sums = is_half ? pointer_to<C>(call.workspace) : as<C>(dx);
    enqueue_fill(queue.stream, is_half ? DType::f32 : dx.dtype, sums, 0, dx.elements());
    const int64_t count = index.elements() == 0 ? 0 : lines.outer * lines.inner;
    launch(queue.stream, {blocks_for(count, 1), kBlock}, add_gathered<T>, queue.faults, lines, indices(index), as<const T>(dy), sums);
    if (is_half) enqueue_cast(queue.stream, dx.dtype, as<void>(dx), DType::f32, sums, dx.elements());
  });
}

}  // namespace st::cuda
