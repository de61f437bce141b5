#include "backend/cuda/reduce.cuh"

#include <utility>

#include "backend/cuda/element_types.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/reduce_pieces.h"
#include "backend/kernel_side.h"
#include "backend/merged_axes.h"
#include "base/error.h"

namespace st::cuda {
namespace {

template <class Reduce, class T>
struct Launcher {
  using S = typename Reduce::template Sum<Compute<T>>;
  StreamHandle stream;
  const T* x;
  T* y;
  S* partial;
  double scale;

  template <class X, class Y>
  void rows(const X* from, int64_t count, int64_t n, int64_t pieces, int64_t piece, double times, Y* to) const {
    const Group group = group_for(std::min(n, piece) * static_cast<int64_t>(sizeof(X)));
    launch(stream, {blocks_for_rows(count * pieces, group), kBlock}, reduce_rows<Reduce, X, Y>, group, from, count, n, pieces, piece, times,
           to);
  }
  void rows(int64_t count, int64_t n) const {
    const int64_t pieces = pieces_of(n, kPieceOfRow);
    if (pieces == 1) return rows(x, count, n, 1, kPieceOfRow, scale, y);
    rows(x, count, n, pieces, kPieceOfRow, 1, partial);
    rows(partial, count, pieces, 1, pieces, scale, y);
  }

  template <class Y>
  void columns(const MergedAxes& axes, int64_t pieces, double times, Y* to) const {
    constexpr int kWarps = kBlock / kLanes;
    const int of_rows = axes.gone <= kWarps ? 1 : kWarps;
    const int64_t width = kWarps / of_rows * kLanes * kOfVector<T>, tiles = (axes.inner + width - 1) / width;
    launch(stream, {axes.outer * pieces * tiles, kBlock}, reduce_columns<Reduce, T, Y>, x, axes.gone, axes.inner, pieces, kPieceOfColumn,
           of_rows, times, to);
  }
  void columns(const MergedAxes& axes) const {
    const int64_t pieces = pieces_of(axes.gone, kPieceOfColumn);
    if (pieces == 1) return columns(axes, 1, scale, y);
    columns(axes, pieces, 1, partial);
    const int64_t tiles = (axes.inner + kLanes - 1) / kLanes;
    launch(stream, {axes.outer * tiles, kBlock}, reduce_pieces<Reduce, S, T>, partial, axes.outer, pieces, axes.inner, scale, y, axes.inner,
           nullptr);
  }

  void scattered(const MergedAxes& axes) const {
    Dimensions kept, gone;
    for (; kept.rank < axes.kept_rank; ++kept.rank) {
      kept.size[kept.rank] = axes.kept_size[static_cast<size_t>(kept.rank)];
      kept.stride[kept.rank] = axes.kept_stride[static_cast<size_t>(kept.rank)];
    }
    for (; gone.rank < axes.gone_rank; ++gone.rank) {
      gone.size[gone.rank] = axes.gone_size[static_cast<size_t>(gone.rank)];
      gone.stride[gone.rank] = axes.gone_stride[static_cast<size_t>(gone.rank)];
    }
    const Group group = group_for(axes.removed * static_cast<int64_t>(sizeof(T)));
    launch(stream, {blocks_for_rows(axes.kept(), group), kBlock}, reduce_scattered<Reduce, T>, group, x, kept, gone, axes.kept(),
           axes.removed, scale, y);
  }

  void run(MergedAxes axes) const {
    if (!axes.regular) return scattered(axes);
    if (axes.gone == 1) axes.inner *= std::exchange(axes.outer, 1);  // nothing to reduce: one row
    if (axes.inner == 1) return rows(axes.outer, axes.gone);
    columns(axes);
  }
};

template <class Reduce>
void launch_reduction(StreamHandle stream, Op op, const Call& call) {
  const MergedAxes axes(name_of(op), call.in[0].shape, call.attrs->ints("axes"));
  const double scale = op == Op::mean ? 1 / static_cast<double>(axes.removed) : 1;  // without elements: 0 * infinity
  with_floating(op, call.in[0].dtype, [&](auto t) {
    using T = decltype(t);
    using L = Launcher<Reduce, T>;
    L{stream, as<const T>(call.in[0]), as<T>(call.out[0]), pointer_to<typename L::S>(call.workspace), scale}.run(axes);
  });
}

}  // namespace

void enqueue_row_sums(StreamHandle stream, const Operand& x, const Operand& y, Address workspace) {
  static const Ints kRows = {0};
  const MergedAxes axes("sum", {y.elements() == 0 ? 0 : x.elements() / y.elements(), y.elements()}, kRows);
  with_floating(Op::sum, x.dtype, [&](auto t) {
    using T = decltype(t);
    using L = Launcher<Adding, T>;
    L{stream, as<const T>(x), as<T>(y), pointer_to<typename L::S>(workspace), 1}.run(axes);
  });
}

void enqueue_reduction(const KernelQueue& queue, Op op, const Call& call) {
  switch (op) {
    case Op::sum:
    case Op::mean:
      return launch_reduction<Adding>(queue.stream, op, call);
    case Op::max:
      return launch_reduction<Choosing>(queue.stream, op, call);
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " is no reduction"));
  }
}

}  // namespace st::cuda
