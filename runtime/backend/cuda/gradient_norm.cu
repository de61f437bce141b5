#include "backend/cuda/gradient_norm.cuh"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "backend/cuda/element_types.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/gradient_norm_work.h"
#include "backend/kernel_side.h"

namespace st::cuda {
namespace {

using gradient_norm_order::blocks_of;

/// The parts of the workspace that add_trees() writes, and the marks that it reads.
struct NormPlaces {
  double* tensor_sums;
  uint8_t *block_marks = nullptr, *tensor_marks = nullptr;  // null: no marks are wanted

  NormPlaces(const Call& call, const GradientNormWork& work)
      : tensor_sums(pointer_to<double>(call.workspace + work.tensor_sums())),
        block_marks(pointer_to<uint8_t>(call.workspace + work.block_marks())),
        tensor_marks(pointer_to<uint8_t>(call.workspace + work.tensor_marks())) {}
};

/// The sums of all gradients' blocks, one after the other.
void enqueue_squares(StreamHandle stream, Op op, std::span<const Operand> gradients, double* sums, uint8_t* marks) {
  for (const Operand& gradient : gradients) {
    const int64_t elements = gradient.elements(), blocks = blocks_of(elements);
    with_floating(op, gradient.dtype, [&](auto t) {
      using T = decltype(t);
      launch(stream, {blocks_for(blocks * kThreadsOfBlock, 1), kBlock}, square_blocks<T>, as<const T>(gradient), elements, sums, marks);
    });
    sums += blocks;
    if (marks != nullptr) marks += blocks;
  }
}

/// The sums of tensors from those of blocks. each(t): the first block and the number of blocks of tensor t.
template <class Each>
void enqueue_trees(StreamHandle stream, const double* sums, const uint8_t* marks, int64_t count, const Each& each, double* tensor_sums,
                   uint8_t* tensor_marks) {
  for (int64_t from = 0; from < count; from += kMostTensors) {
    const int64_t together = std::min<int64_t>(kMostTensors, count - from);
    TensorBlocks tensors{};
    for (int64_t t = 0; t < together; ++t) std::tie(tensors.first[t], tensors.count[t]) = each(from + t);
    launch(stream, {together, kBlock}, add_trees, sums, marks, tensors, tensor_sums + from,
           tensor_marks == nullptr ? nullptr : tensor_marks + from);
  }
}

void enqueue_norm(StreamHandle stream, const NormPlaces& places, int64_t tensors, const Call& call) {
  launch(stream, {1, 1}, set_norm, places.tensor_sums, places.tensor_marks, tensors, as<double>(call.out[0]), as<uint8_t>(call.out[1]));
}

void enqueue_whole_norm(StreamHandle stream, const Call& call) {
  int64_t blocks = 0;
  for (const Operand& gradient : call.in) blocks += blocks_of(gradient.elements());
  const auto tensors = static_cast<int64_t>(call.in.size());
  const NormPlaces places(call, {blocks, tensors});
  auto* const sums = pointer_to<double>(call.workspace);
  enqueue_squares(stream, Op::gradient_norm, call.in, sums, places.block_marks);
  int64_t first = 0;
  const auto each = [&](int64_t t) {
    const int64_t count = blocks_of(call.in[static_cast<size_t>(t)].elements());
    first += count;
    return std::pair(first - count, count);
  };
  enqueue_trees(stream, sums, places.block_marks, tensors, each, places.tensor_sums, places.tensor_marks);
  enqueue_norm(stream, places, tensors, call);
}

/// The tensors of the attribute, as TensorBlocks has them.
auto tensors_of(const Call& call) {
  return [tensors = call.attrs->ints("tensors")](int64_t t) {
    return std::pair(tensors[static_cast<size_t>(2 * t)], tensors[static_cast<size_t>(2 * t + 1)]);
  };
}

void enqueue_norm_of_squares(StreamHandle stream, const Call& call) {
  const int64_t tensors = std::ssize(call.attrs->ints("tensors")) / 2;
  const NormPlaces places(call, {0, tensors});
  enqueue_trees(stream, as<const double>(call.in[0]), nullptr, tensors, tensors_of(call), places.tensor_sums, places.tensor_marks);
  enqueue_norm(stream, places, tensors, call);
}

}  // namespace

void enqueue_gradient_norm(const KernelQueue& queue, Op op, const Call& call) {
  switch (op) {
    case Op::gradient_norm:
      return enqueue_whole_norm(queue.stream, call);
    case Op::gradient_squares:
      return enqueue_squares(queue.stream, op, call.in, as<double>(call.out[0]), nullptr);
    case Op::norm_of_squares:
      return enqueue_norm_of_squares(queue.stream, call);
    case Op::tensor_squares:
      return enqueue_trees(queue.stream, as<const double>(call.in[0]), nullptr, std::ssize(call.attrs->ints("tensors")) / 2,
                           tensors_of(call), as<double>(call.out[0]), nullptr);
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " is no part of a norm"));
  }
}

void enqueue_step_factor(const KernelQueue& queue, Op /*op*/, const Call& call) {
  launch(queue.stream, {1, 1}, set_step_factor, as<const double>(call.in[0]), as<const uint8_t>(call.in[1]), as<const double>(call.in[2]),
         call.attrs->real("seed"), call.attrs->real("max_norm"), as<float>(call.out[0]), as<double>(call.out[1]), as<uint8_t>(call.out[2]));
}

}  // namespace st::cuda
