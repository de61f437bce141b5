#include "backend/cuda/op_kernels.h"

#include <array>
#include <initializer_list>

#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"
#include "backend/reference/elements.h"

namespace st::cuda {
namespace {

void enqueue_cast_op(const KernelQueue& queue, Op /*op*/, const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  enqueue_cast(queue.stream, y.dtype, as<void>(y), x.dtype, as<const void>(x), x.elements());
}

uint64_t element_bits(DType dtype, double value) {
  uint64_t bits = 0;
  reference::set({address_of(&bits), dtype, Shape{}}, 0, value);
  return bits;
}

void enqueue_fill_op(const KernelQueue& queue, Op /*op*/, const Call& call) {
  const Operand& y = call.out[0];
  enqueue_fill(queue.stream, y.dtype, as<void>(y), element_bits(y.dtype, call.attrs->real("value")), y.elements());
}

using Table = std::array<EnqueueOp, kOps>;

constexpr Table table_of_ops() {
  Table table{};
  const auto set = [&](EnqueueOp enqueue, std::initializer_list<Op> ops) {
    for (const Op op : ops) table[static_cast<size_t>(op)] = enqueue;
  };
  set(enqueue_cast_op, {Op::cast});
  set(enqueue_fill_op, {Op::fill});
  set(enqueue_pointwise,
      {Op::add, Op::sub, Op::mul, Op::div, Op::minimum, Op::maximum, Op::compare, Op::where, Op::affine, Op::sqrt, Op::abs, Op::neg,
       Op::sign, Op::clamp, Op::relu, Op::relu_backward, Op::tanh_backward, Op::sigmoid_backward, Op::accumulate});
  set(enqueue_update, {Op::adamw, Op::sgd, Op::lion, Op::rmsprop, Op::adagrad});
  set(enqueue_dropout, {Op::dropout});
  set(enqueue_rearranged, {Op::broadcast_to, Op::transpose, Op::slice, Op::split, Op::concat, Op::pad, Op::store, Op::tensor_part});
  return table;
}

constexpr Table kTable = table_of_ops();

}  // namespace

EnqueueOp kernels_of(Op op) { return kTable[static_cast<size_t>(op)]; }

}  // namespace st::cuda
