#include "backend/cuda/paired_loss.cuh"

#include "backend/cuda/element_types.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/pair_sums.h"
#include "backend/kernel_side.h"

namespace st::cuda {
namespace {

PairedLoss paired_loss(Op op, const Attrs& attrs) { return {op, attrs.has("delta") ? attrs.real("delta") : 0}; }

template <class T>
const T* weights_at(const Call& call, size_t input) {
  return call.in.size() > input ? as<const T>(call.in[input]) : nullptr;
}

}  // namespace

void enqueue_paired_loss(const KernelQueue& queue, Op op, const Call& call) {
  const Operand& x = call.in[0];
  const int64_t elements = x.elements(), blocks = paired_blocks(elements);
  auto* const pairs = pointer_to<double>(call.workspace);
  with_floating(op, x.dtype, [&](auto t) {
    using T = decltype(t);
    launch(queue.stream, {blocks, kBlock}, sum_paired_loss<T>, paired_loss(op, *call.attrs), as<const T>(x), as<const T>(call.in[1]),
           weights_at<T>(call, 2), elements, pairs);
  });
  enqueue_pair_sums(queue.stream, pairs, blocks, as<double>(call.out[0]), as<double>(call.out[1]));
}

void enqueue_paired_loss_backward(const KernelQueue& queue, Op op, const Call& call) {
  const Operand& x = call.in[0];
  const double factor = op == Op::mse_backward ? 2 : 1;
  with_floating(op, x.dtype, [&](auto t) {
    using T = decltype(t);
    launch(queue.stream, {blocks_for(x.elements(), kPairedVector), kBlock}, slope_paired_loss<T>, paired_loss(op, *call.attrs), factor,
           as<const double>(call.in[2]), as<const T>(x), as<const T>(call.in[1]), weights_at<T>(call, 3), as<T>(call.out[0]), x.elements());
  });
}

}  // namespace st::cuda
