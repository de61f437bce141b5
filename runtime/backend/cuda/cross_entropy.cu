// cross_entropy and its gradient, apart and fused, of all classes and of a rank's part of the vocabulary: one kernel (loss_rows.cuh).
#include "backend/cuda/element_types.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/loss_rows.cuh"
#include "backend/cuda/pair_sums.h"
#include "backend/kernel_side.h"

namespace st::cuda {
namespace {

/// The operands and attributes that all ops of this file have. Borrows the call.
struct LossCall {
  LossCall(const Call& from, size_t weights)
      : logits(from.in[0]),
        targets(from.in[1]),
        rows(targets.elements()),
        weights_at(weights),
        call(from),
        classes{from.attrs->integer("ignore_index"), from.attrs->has("first") ? from.attrs->integer("first") : 0,
                from.attrs->has("classes") ? from.attrs->integer("classes") : logits.shape.last(), logits.shape.last()} {
    const Attrs& attrs = *from.attrs;
    terms.smoothing = attrs.real("label_smoothing");
    terms.even = terms.smoothing / static_cast<double>(classes.classes);
    terms.z_loss = attrs.has("z_loss") ? attrs.real("z_loss") : 0;
  }
  template <class T>
  const T* weights() const {
    return call.in.size() > weights_at ? as<const T>(call.in[weights_at]) : nullptr;
  }

  const Operand &logits, &targets;
  int64_t rows;
  size_t weights_at;
  const Call& call;
  LossClasses classes;
  LossTerms terms;
};

/// The wanted results of a launch, as of loss_rows().
template <class T, class R>
struct LossResults {
  const double *dsum = nullptr, *softmax = nullptr;
  double* pairs = nullptr;
  Compute<T>* lse = nullptr;
  double* parts = nullptr;
  R* dlogits = nullptr;
};

template <class T, class R>
void launch_rows(const KernelQueue& queue, const LossCall& loss, const LossResults<T, R>& results) {
  launch(queue.stream, {loss.rows, loss_threads<T>(loss.classes.columns)}, loss_rows<T, R>, queue.faults, indices(loss.targets),
         loss.classes, loss.terms, as<const T>(loss.logits), loss.weights<T>(), results.dsum, results.softmax, results.pairs, results.lse,
         results.parts, results.dlogits);
}

double* pairs_of(const Call& call) { return pointer_to<double>(call.workspace); }

void enqueue_sums(StreamHandle stream, const LossCall& loss) {
  enqueue_pair_sums(stream, pairs_of(loss.call), loss.rows, as<double>(loss.call.out[0]), as<double>(loss.call.out[1]));
}

void enqueue_loss(const KernelQueue& queue, Op op, const Call& call) {
  const LossCall loss(call, 2);
  with_floating(op, loss.logits.dtype, [&](auto t) {
    using T = decltype(t);
    launch_rows<T, T>(queue, loss, {.pairs = pairs_of(call), .lse = as<Compute<T>>(call.out[2])});
  });
  enqueue_sums(queue.stream, loss);
}

/// From its own softmax, or from that of all ranks.
void enqueue_loss_backward(const KernelQueue& queue, Op op, const Call& call) {
  const LossCall loss(call, 4);
  const double* const softmax = op == Op::vocabulary_cross_entropy_backward ? as<const double>(call.in[2]) : nullptr;
  with_floating(op, loss.logits.dtype, [&](auto t) {
    using T = decltype(t);
    launch_rows<T, T>(queue, loss, {.dsum = as<const double>(call.in[3]), .softmax = softmax, .dlogits = as<T>(call.out[0])});
  });
}

template <class R>
void launch_fused(const KernelQueue& queue, const LossCall& loss) {
  const Call& call = loss.call;
  launch_rows<float, R>(queue, loss, {.dsum = as<const double>(call.in[2]), .pairs = pairs_of(call), .dlogits = as<R>(call.out[2])});
}

void enqueue_fused_loss(const KernelQueue& queue, const Call& call) {
  const LossCall loss(call, 3);
  switch (call.out[2].dtype) {
    case DType::bf16:
      launch_fused<Bf16>(queue, loss);
      break;
    case DType::f16:
      launch_fused<F16>(queue, loss);
      break;
    default:
      launch_fused<float>(queue, loss);
      break;
  }
  enqueue_sums(queue.stream, loss);
}

void enqueue_parts(const KernelQueue& queue, const Call& call) {
  const LossCall loss(call, 2);
  with_floating(Op::vocabulary_terms, loss.logits.dtype, [&](auto t) {
    using T = decltype(t);
    launch_rows<T, T>(queue, loss, {.parts = as<double>(call.out[0])});
  });
}

void enqueue_joined(const KernelQueue& queue, const Call& call) {
  const LossCall loss(call, 3);
  const Operand& parts = call.in[2];
  with_floating(Op::vocabulary_cross_entropy, loss.logits.dtype, [&](auto t) {
    using T = decltype(t);
    launch(queue.stream, {blocks_for(loss.rows, 1), kBlock}, join_ranks<T>, queue.faults, indices(loss.targets), loss.classes, loss.terms,
           as<const double>(parts), parts.shape[0], loss.rows, loss.weights<T>(), pairs_of(call), as<Compute<T>>(call.out[2]),
           as<double>(call.out[3]));
  });
  enqueue_sums(queue.stream, loss);
}

}  // namespace

void enqueue_cross_entropy(const KernelQueue& queue, Op op, const Call& call) {
  switch (op) {
    case Op::cross_entropy:
      return enqueue_loss(queue, op, call);
    case Op::cross_entropy_backward:
    case Op::vocabulary_cross_entropy_backward:
      return enqueue_loss_backward(queue, op, call);
    case Op::fused_cross_entropy:
      return enqueue_fused_loss(queue, call);
    case Op::vocabulary_terms:
      return enqueue_parts(queue, call);
    case Op::vocabulary_cross_entropy:
      return enqueue_joined(queue, call);
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " is no loss of classes"));
  }
}

}  // namespace st::cuda
