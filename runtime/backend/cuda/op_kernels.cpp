#include "backend/cuda/op_kernels.h"

#include <array>
#include <bit>
#include <initializer_list>

#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"
#include "base/float16.h"
#include "base/narrowing.h"

namespace st::cuda {
namespace {

void enqueue_cast_op(const KernelQueue& queue, Op /*op*/, const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  if (x.dtype == y.dtype) return enqueue_rearranged(queue, Op::broadcast_to, call);  // to its own shape: a copy
  enqueue_cast(queue.stream, y.dtype, as<void>(y), x.dtype, as<const void>(x), x.elements());
}

/// As the cpu fills.
uint64_t element_bits(DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::f64:
      return std::bit_cast<uint64_t>(value);
    case DType::bf16:
      return bf16_of(odd_float_of(value));
    case DType::f16:
      return f16_of(odd_float_of(value));
    case DType::i32:
      return static_cast<uint32_t>(truncate_to<int32_t>(value));
    case DType::i64:
      return static_cast<uint64_t>(truncate_to<int64_t>(value));
    case DType::u8:
      return truncate_to<uint8_t>(value);
    case DType::boolean:
      return value != 0;
  }
  return 0;
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
  set(enqueue_update, {Op::adamw, Op::adamw_8bit, Op::sgd, Op::lion, Op::rmsprop, Op::adagrad});
  set(enqueue_adafactor, {Op::adafactor, Op::adafactor_sums, Op::adafactor_size, Op::adafactor_step});
  set(enqueue_muon, {Op::muon, Op::muon_direction, Op::muon_step});
  set(enqueue_transcendental, {Op::exp, Op::log, Op::pow, Op::gelu, Op::gelu_backward, Op::silu, Op::silu_backward, Op::tanh, Op::sigmoid});
  set(enqueue_rope, {Op::rope});
  set(enqueue_attention, {Op::attention});
  set(enqueue_attention_backward, {Op::attention_backward});
  set(enqueue_dropout, {Op::dropout});
  set(enqueue_product, {Op::matmul, Op::linear, Op::fused_linear});
  set(enqueue_rearranged, {Op::broadcast_to, Op::transpose, Op::slice, Op::split, Op::concat, Op::pad, Op::store, Op::tensor_part});
  set(enqueue_embedding, {Op::embedding});
  set(enqueue_embedding_backward, {Op::embedding_backward});
  set(enqueue_gather, {Op::gather});
  set(enqueue_gather_backward, {Op::gather_backward});
  set(enqueue_gradient_norm, {Op::gradient_norm, Op::gradient_squares, Op::norm_of_squares, Op::tensor_squares});
  set(enqueue_step_factor, {Op::step_factor});
  set(enqueue_cross_entropy, {Op::cross_entropy, Op::cross_entropy_backward, Op::fused_cross_entropy, Op::vocabulary_terms,
                              Op::vocabulary_cross_entropy, Op::vocabulary_cross_entropy_backward});
  set(enqueue_paired_loss, {Op::mse, Op::huber, Op::bce_with_logits});
  set(enqueue_paired_loss_backward, {Op::mse_backward, Op::huber_backward, Op::bce_with_logits_backward});
  set(enqueue_average, {Op::average});
  set(enqueue_norm, {Op::layer_norm, Op::layer_norm_backward, Op::rms_norm, Op::rms_norm_backward});
  set(enqueue_reduction, {Op::sum, Op::mean, Op::max});
  set(enqueue_softmax, {Op::softmax, Op::softmax_backward, Op::log_softmax, Op::log_softmax_backward});
  set(enqueue_argmax, {Op::argmax});
  return table;
}

constexpr Table kTable = table_of_ops();

}  // namespace

EnqueueOp kernels_of(Op op) { return kTable[static_cast<size_t>(op)]; }

void choose_products(ProductChoices& choices, Op op, const Call& call) {
  if (op == Op::matmul || op == Op::linear || op == Op::fused_linear) choose_product(choices, op, call);
  if (op == Op::muon || op == Op::muon_step) choose_muon_products(choices, op, call);
}

}  // namespace st::cuda
