#include "backend/cuda/softmax.cuh"

#include "backend/cuda/element_types.h"
#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"
#include "base/error.h"

namespace st::cuda {
namespace {

/// A tensor as lines of n elements along an axis.
struct AxisLines {
  int64_t count, n, inner;
};
AxisLines axis_lines(Op op, const Call& call) {
  const Shape& shape = call.in[0].shape;
  const int32_t axis = normalize_axis(name_of(op), call.attrs->integer("axis"), shape.rank());
  const int64_t inner = shape.elements(axis + 1, shape.rank());
  return {shape.elements(0, axis) * inner, shape[axis], inner};
}

template <class T>
void launch_softmax(StreamHandle stream, const Call& call, const AxisLines& lines, bool is_log) {
  const T* const x = as<const T>(call.in[0]);
  T* const y = as<T>(call.out[0]);
  if (lines.inner == 1) {
    const Group group = group_for(lines.n * static_cast<int64_t>(sizeof(T)));
    launch(stream, {blocks_for_rows(lines.count, group), kBlock}, softmax_rows<T>, group, is_log, x, lines.count, lines.n, y);
  } else {
    launch(stream, {blocks_for(lines.count, 1), kBlock}, softmax_lines<T>, is_log, x, lines.count, lines.n, lines.inner, y);
  }
}

template <class T>
void launch_softmax_backward(StreamHandle stream, const Call& call, const AxisLines& lines, bool is_log) {
  const T *const y = as<const T>(call.in[0]), *const dy = as<const T>(call.in[1]);
  T* const dx = as<T>(call.out[0]);
  if (lines.inner == 1) {
    const Group group = group_for(lines.n * static_cast<int64_t>(sizeof(T)));
    launch(stream, {blocks_for_rows(lines.count, group), kBlock}, softmax_row_gradients<T>, group, is_log, y, dy, lines.count, lines.n, dx);
  } else {
    launch(stream, {blocks_for(lines.count, 1), kBlock}, softmax_line_gradients<T>, is_log, y, dy, lines.count, lines.n, lines.inner, dx);
  }
}

}  // namespace

void enqueue_softmax(const KernelQueue& queue, Op op, const Call& call) {
  const AxisLines lines = axis_lines(op, call);
  with_floating(op, call.out[0].dtype, [&](auto t) {
    using T = decltype(t);
    switch (op) {
      case Op::softmax:
      case Op::log_softmax:
        return launch_softmax<T>(queue.stream, call, lines, op == Op::log_softmax);
      case Op::softmax_backward:
      case Op::log_softmax_backward:
        return launch_softmax_backward<T>(queue.stream, call, lines, op == Op::log_softmax_backward);
      default:
        fail(Code::internal, text("cuda: ", name_of(op), " is no softmax"));
    }
  });
}

}  // namespace st::cuda
