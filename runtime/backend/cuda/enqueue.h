// Kernels as host code gives them to a stream. They run later; memory is the device's, aligned to 16 bytes, and stays until they have run.
#pragma once

#include <cstdint>

#include "backend/cuda/kernel_queue.h"
#include "backend/rank_fold.h"
#include "base/dtype.h"

namespace st {
enum class Op : int32_t;  // ir/op.h
struct Call;              // backend/backend.h
struct Operand;           // likewise
struct Address;           // backend/address.h
struct GemmProblem;       // gemm/problem.h
}  // namespace st

namespace st::cuda {

/// y = x in another dtype, with the cpu's bits. Throws internal for the same one.
void enqueue_cast(StreamHandle stream, DType to, void* y, DType from, const void* x, int64_t elements);

/// y = the element whose bits are the lower ones of `bits`.
void enqueue_fill(StreamHandle stream, DType dtype, void* y, uint64_t bits, int64_t elements);

/// An elementwise op with the cpu's bits, but for NaN, which may have other bits: add, sub, mul, div, minimum, maximum, compare, where,
/// affine, sqrt, abs, neg, sign, clamp, relu, the gradients of relu, tanh and sigmoid, accumulate. Of `call` the operands and attributes
/// are read, within this call. Throws unsupported for the types that the cpu does not compute, and internal for other ops.
void enqueue_pointwise(const KernelQueue& queue, Op op, const Call& call);

/// exp, log, pow, gelu, silu, tanh, sigmoid, and the gradients of gelu and silu, by the device's functions: not the cpu's bits. Throws
/// unsupported for types that are no floats, and internal for other ops.
void enqueue_transcendental(const KernelQueue& queue, Op op, const Call& call);

/// With angles in fp64. The workspace holds the sines and cosines.
void enqueue_rope(const KernelQueue& queue, Op op, const Call& call);

/// In f32, bf16, f16 and f64, in fixed order without atomics. Throws unsupported where check_attention() does (attention_limits.h).
void enqueue_attention(const KernelQueue& queue, Op op, const Call& call);
/// Likewise; the workspace holds a number for each row.
void enqueue_attention_backward(const KernelQueue& queue, Op op, const Call& call);

/// An optimizer of fp32 parameters: adamw, adamw_8bit, sgd, lion, rmsprop, adagrad. `call` as of the cpu's kernel. Writes nothing if the
/// skip is set, or an index was out of range. Throws unsupported for other types of gradient and parameter, and internal for other ops.
void enqueue_update(const KernelQueue& queue, Op op, const Call& call);

/// adafactor, and adafactor_sums, adafactor_size and adafactor_step of a piece; sums are in the workspace (adafactor_layout.h). Writes no
/// slot if the skip is set, or an index was out of range. Throws unsupported as enqueue_update() does, and internal for other ops.
void enqueue_adafactor(const KernelQueue& queue, Op op, const Call& call);

/// muon, and muon_direction and muon_step of a piece, with matmul's products; the momentum and the direction have the cpu's bits. The
/// workspace is MuonWork's. Writes no slot if the skip is set, or an index was out of range. Throws as enqueue_adafactor() does.
void enqueue_muon(const KernelQueue& queue, Op op, const Call& call);
void choose_muon_products(ProductChoices& choices, Op op, const Call& call);

/// With the cpu's bits. Writes nothing if the skip is set, or an index was out of range. Throws unsupported for averages that are not f32
/// or f64.
void enqueue_average(const KernelQueue& queue, Op op, const Call& call);

/// With the cpu's bits; the counters are read from the device's memory. Throws unsupported for types that are no floats.
void enqueue_dropout(const KernelQueue& queue, Op op, const Call& call);

/// An op that moves elements of any type: broadcast_to, transpose, slice, split, concat, pad, store, tensor_part. Throws internal for
/// others.
void enqueue_rearranged(const KernelQueue& queue, Op op, const Call& call);

/// matmul, linear and fused_linear. Sums over K are in one order, which depends on K and on the type of the result alone (sum_slices.h):
/// fp32 and fp64 by fma, 16-bit operands in fp32. No tile changes a bit. Throws unsupported for other types, a packed weight, and a larger
/// tile than there is (product_tiles.h). Without a request for tiles the queue's choices may give a product to a library, in whose order
/// its sums are then.
void enqueue_product(const KernelQueue& queue, Op op, const Call& call);
/// Makes what the products of a call need, while its device is the current one.
void choose_product(ProductChoices& choices, Op op, const Call& call);

/// The same kernels: C = alpha op(A) op(B) + beta C as gemm/problem.h says, for a row-major C, and rows or columns of A and B without gaps.
/// Throws unsupported for other layouts and types, and for a bias. `workspace`: kLibraryWorkspace bytes, where the queue has choices.
void enqueue_gemm(const KernelQueue& queue, const GemmProblem& problem, const void* a, const void* b, void* c, void* workspace);
void choose_gemm(ProductChoices& choices, const GemmProblem& problem);

/// With the cpu's bits. A token outside the vocabulary is reported: its row of y is 0, and backward adds nothing. Backward throws
/// unsupported for types that are no floats, as gather_backward does.
void enqueue_embedding(const KernelQueue& queue, Op op, const Call& call);
void enqueue_embedding_backward(const KernelQueue& queue, Op op, const Call& call);

/// With the cpu's bits. Indices outside the axis are reported: gather gives 0 for them, and backward adds nothing.
void enqueue_gather(const KernelQueue& queue, Op op, const Call& call);
void enqueue_gather_backward(const KernelQueue& queue, Op op, const Call& call);

/// gradient_norm, gradient_squares, norm_of_squares and tensor_squares with the cpu's bits (backend/gradient_norm_order.h). Throws
/// unsupported for types that are no floats, and internal for other ops.
void enqueue_gradient_norm(const KernelQueue& queue, Op op, const Call& call);
/// With the cpu's bits.
void enqueue_step_factor(const KernelQueue& queue, Op op, const Call& call);

/// cross_entropy, cross_entropy_backward, fused_cross_entropy, vocabulary_terms, vocabulary_cross_entropy and its backward; the fused op
/// has the bits of the two, and so have the ops of one rank. Targets outside the classes are reported; their rows have no loss and no
/// gradient. Throws unsupported for logits that are no floats, and internal for other ops.
void enqueue_cross_entropy(const KernelQueue& queue, Op op, const Call& call);

/// mse, huber and bce_with_logits, and their gradients. Throws unsupported for types that are no floats.
void enqueue_paired_loss(const KernelQueue& queue, Op op, const Call& call);
void enqueue_paired_loss_backward(const KernelQueue& queue, Op op, const Call& call);

/// layer_norm, rms_norm and their gradients; partial sums of those of gamma and beta are in the workspace (norm_blocks.h). Throws
/// unsupported for types that are no floats, and internal for other ops.
void enqueue_norm(const KernelQueue& queue, Op op, const Call& call);

/// sum, mean and max over axes; partial results of long ones are in the workspace (reduce_pieces.h). Throws unsupported for types that are
/// no floats, and internal for other ops.
void enqueue_reduction(const KernelQueue& queue, Op op, const Call& call);

/// y = the sum of the rows of x, whose last dimension is y's, with the bits of the op `sum`, and its workspace.
void enqueue_row_sums(StreamHandle stream, const Operand& x, const Operand& y, Address workspace);

/// softmax, log_softmax and their gradients, along any axis. Throws unsupported for types that are no floats, and internal for other ops.
void enqueue_softmax(const KernelQueue& queue, Op op, const Call& call);

/// argmax along any axis. Throws unsupported for types that are no floats.
void enqueue_argmax(const KernelQueue& queue, Op op, const Call& call);

/// As RankFold says (backend/rank_fold.h), with the bits of run_fold(): the sums of what ranks have, one term after the other. Terms need
/// no more than their element's alignment; those of 16 bytes are faster. Throws unsupported for more than kMostTerms terms and for bool.
constexpr int kMostTerms = 128;
void enqueue_fold(StreamHandle stream, const RankFold& fold);

}  // namespace st::cuda
