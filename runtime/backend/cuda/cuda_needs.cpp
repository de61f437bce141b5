// The needs of the kernels of NVIDIA's devices. Part of the library, so that plans can be made without a toolkit or a device.
#include <algorithm>

#include "backend/cuda/adafactor_layout.h"
#include "backend/cuda/attention_limits.h"
#include "backend/cuda/embedding_work.h"
#include "backend/cuda/gradient_norm_work.h"
#include "backend/cuda/muon_work.h"
#include "backend/cuda/norm_blocks.h"
#include "backend/cuda/paired_loss_work.h"
#include "backend/cuda/product_choice.h"
#include "backend/cuda/product_tiles.h"
#include "backend/cuda/reduce_pieces.h"
#include "backend/cuda/update_numbers.h"
#include "backend/gradient_norm_order.h"
#include "backend/merged_axes.h"
#include "backend/needs.h"
#include "backend/piece_parts.h"
#include "ir/linear_places.h"
#include "ir/piece_update.h"

namespace st {
namespace {

/// each: bytes of a partial result.
int64_t reduction_partials(const Type& x, const Ints& reduced, int64_t each) {
  const MergedAxes axes("sum", x.shape, reduced);
  if (!axes.regular) return 0;
  const int64_t pieces = cuda::pieces_of(axes.gone, axes.inner == 1 ? cuda::kPieceOfRow : cuda::kPieceOfColumn);
  return pieces == 1 ? 0 : axes.outer * pieces * axes.inner * each;
}

/// Refuses what no kernel computes. Sums of columns are those of the op sum.
int64_t product_workspace(Op op, Types in, Types out, const Attrs& attrs) {
  const Type &a = in[0], &c = out[0];
  cuda::check_product_types(name_of(op), a.dtype, c.dtype);
  const int64_t n = c.shape.last(), rows = c.shape.elements(0, c.shape.rank() - 1);
  cuda::product_tile(name_of(op), {.dtype = a.dtype, .m = rows, .n = n, .matrices = 1}, attrs);
  cuda::algorithm_asked(name_of(op), attrs);
  const int64_t library = a.dtype == DType::f64 ? 0 : cuda::kLibraryWorkspace;
  if (op != Op::fused_linear || LinearPlaces(attrs).column_sums < 0) return library;
  return std::max(library, reduction_partials({.dtype = c.dtype, .shape = {rows, n}, .layout = {}}, Ints{0}, sizeof(double)));
}

cuda::GradientNormWork norm_work(Types gradients) {
  cuda::GradientNormWork work = {0, std::ssize(gradients)};
  for (const Type& gradient : gradients) work.blocks += gradient_norm_order::blocks_of(gradient.shape.elements());
  return work;
}

constexpr int64_t bytes_of_compute(DType dtype) { return dtype == DType::f64 ? 8 : 4; }

int64_t workspace_of(const MachineProfile& /*machine*/, Op op, Types in, Types out, const Attrs& attrs) {
  switch (op) {
    case Op::adamw:
    case Op::adamw_8bit:
    case Op::sgd:
    case Op::lion:
    case Op::rmsprop:
    case Op::adagrad:
      return sizeof(cuda::UpdateNumbers);
    case Op::adafactor:
      return cuda::AdafactorLayout(in[0].shape).bytes();
    case Op::adafactor_sums:
    case Op::adafactor_size:
    case Op::adafactor_step:
      return cuda::AdafactorLayout(in[0].shape, PieceParts(in[0].shape, attrs).whole_rows()).bytes();
    case Op::muon:
      return cuda::MuonWork{in[0].shape[0], in[0].shape[1]}.bytes();
    case Op::muon_step: {
      const Shape whole = whole_of_directions(in[0].shape, attrs);
      return cuda::MuonWork{whole[0], whole[1]}.bytes();
    }
    case Op::matmul:
    case Op::linear:
    case Op::fused_linear:
      return product_workspace(op, in, out, attrs);
    case Op::embedding_backward:
      return cuda::EmbeddingWork{in[0].shape.elements(), out[0].shape[0]}.bytes();
    case Op::gather_backward:  // sums of 16-bit floats
      return bytes_of(out[0].dtype) == 2 ? out[0].shape.elements() * 4 : 0;
    case Op::gradient_norm:
      return norm_work(in).bytes();
    case Op::norm_of_squares:
      return cuda::GradientNormWork{0, std::ssize(attrs.ints("tensors")) / 2}.bytes();
    case Op::cross_entropy:  // of each row a term of the sum and of the count
    case Op::fused_cross_entropy:
    case Op::vocabulary_cross_entropy:
      return in[1].shape.elements() * 16;
    case Op::bce_with_logits:  // the same of each block
    case Op::huber:
    case Op::mse:
      return cuda::paired_blocks(in[0].shape.elements()) * 16;
    case Op::attention:
      cuda::check_attention(op, in[0].dtype);
      return 0;
    case Op::attention_backward:  // sum(do o) of each row
      cuda::check_attention(op, in[0].dtype);
      return in[0].shape.elements(0, 3) * bytes_of_compute(in[0].dtype);
    case Op::rope:  // sines and cosines
      return in[0].shape[1] * in[0].shape[3] * bytes_of_compute(in[0].dtype);
    case Op::layer_norm_backward:
      return cuda::norm_partials(in[0].dtype, in[3].shape.elements(), 2, in[0].shape.last());
    case Op::rms_norm_backward:
      return cuda::norm_partials(in[0].dtype, in[2].shape.elements(), 1, in[0].shape.last());
    case Op::sum:
    case Op::mean:
      return reduction_partials(in[0], attrs.ints("axes"), 8);
    case Op::max:
      return reduction_partials(in[0], attrs.ints("axes"), in[0].dtype == DType::f64 ? 8 : 4);
    default:
      return 0;
  }
}

}  // namespace

constinit const DeviceNeeds cuda_needs = {workspace_of};

}  // namespace st
