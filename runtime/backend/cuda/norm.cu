#include "backend/cuda/norm.cuh"

#include "backend/cuda/element_types.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/pieces.cuh"
#include "backend/kernel_side.h"
#include "base/error.h"

namespace st::cuda {
namespace {

/// gamma is of fp32 and x of 16 bits.
bool has_wide_scales(const Call& call) { return call.in[1].dtype != call.in[0].dtype; }

template <class T>
void launch_norm(StreamHandle stream, const Call& call, bool centered) {
  using C = Compute<T>;
  const Operand& rstd = call.out[centered ? 2 : 1];
  const int64_t rows = rstd.elements(), columns = call.in[0].shape.last();
  const Group group = group_for(columns * static_cast<int64_t>(sizeof(T)));
  launch(stream, {blocks_for_rows(rows, group), kBlock}, norm_rows<T>, group, as<const T>(call.in[0]), as<const void>(call.in[1]),
         centered ? as<const void>(call.in[2]) : nullptr, has_wide_scales(call), call.attrs->real("epsilon"), rows, columns,
         as<T>(call.out[0]), centered ? as<C>(call.out[1]) : nullptr, as<C>(rstd));
}

/// Inputs x, gamma, mean (if centered), rstd, dy; outputs dx, dgamma, dbeta (if centered).
template <class T>
void launch_norm_backward(StreamHandle stream, const Call& call, bool centered) {
  using C = Compute<T>;
  const Operand &rstd = call.in[centered ? 3 : 2], &dy = call.in[centered ? 4 : 3];
  const int64_t rows = rstd.elements(), columns = call.in[0].shape.last(), sums = centered ? 2 : 1;
  const Group group = group_for(columns * static_cast<int64_t>(sizeof(T)));
  C* const partial = pointer_to<C>(call.workspace);
  launch(stream, {row_blocks(rows), kBlock}, norm_gradients<T>, group, as<const T>(call.in[0]), as<const void>(call.in[1]),
         has_wide_scales(call), centered ? as<const C>(call.in[2]) : nullptr, as<const C>(rstd), as<const T>(dy), rows, rows_of_block(rows),
         columns, as<T>(call.out[0]), partial);
  const auto add = [&](auto g) {
    using G = decltype(g);
    launch(stream, {(sums * columns + kLanes - 1) / kLanes, kBlock}, reduce_pieces<Adding, C, G>, partial, 1, row_blocks(rows),
           sums * columns, 1, as<G>(call.out[1]), columns, centered ? as<G>(call.out[2]) : nullptr);
  };
  if (has_wide_scales(call)) return add(C{});
  add(T{});
}

}  // namespace

void enqueue_norm(const KernelQueue& queue, Op op, const Call& call) {
  with_floating(op, call.in[0].dtype, [&](auto t) {
    using T = decltype(t);
    switch (op) {
      case Op::layer_norm:
        return launch_norm<T>(queue.stream, call, true);
      case Op::layer_norm_backward:
        return launch_norm_backward<T>(queue.stream, call, true);
      case Op::rms_norm:
        return launch_norm<T>(queue.stream, call, false);
      case Op::rms_norm_backward:
        return launch_norm_backward<T>(queue.stream, call, false);
      default:
        fail(Code::internal, text("cuda: ", name_of(op), " is no norm"));
    }
  });
}

}  // namespace st::cuda
