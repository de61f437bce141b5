// Shape rules of ops that move, select or sum elements: indexing, reductions, reshapes, slices.
#include "ir/shape_rules.h"

namespace st::shape_rule {

// --- indexing

Outputs embedding(const OpTypes& op) {
  check_floating(op, 0);
  check(op.in[0].shape.rank() == 2, "embedding: weight needs 2 dimensions [V, C], got ", op.in[0]);
  check_fixed(op, 0, 0);
  check_index(op, 1);
  Shape out = op.in[1].shape;
  out.push_back(op.in[0].shape[1]);
  return {typed(op.in[0].dtype, out)};
}

Outputs embedding_backward(const OpTypes& op) {
  check_index(op, 0);
  check_floating(op, 1);
  check_rank(op, 1, 1);
  check(op.in[0].shape == without_last(op.in[1].shape), name(op), ": dy must have one row per token, tokens is ", op.in[0], ", dy is ",
        op.in[1]);
  const int64_t rows = op.attrs.integer("rows");
  check(rows >= 0, name(op), ": rows must not be negative, got ", rows);
  return {typed(op.in[1].dtype, {rows, op.in[1].shape.last()})};
}

Outputs gather(const OpTypes& op) {
  check_floating(op, 0);
  check_index(op, 1);
  const Shape &x = op.in[0].shape, &index = op.in[1].shape;
  const int32_t axis = axis_of(op, x);
  check(x.rank() == index.rank() && without(x, axis) == without(index, axis), name(op),
        ": index must have x's shape in every dimension except axis ", axis, ", x is ", op.in[0], ", index is ", op.in[1]);
  check_fixed(op, 0, axis);
  return {typed(op.in[0].dtype, index)};
}

Outputs gather_backward(const OpTypes& op) {
  check_index(op, 0);
  check_floating(op, 1);
  check(op.in[0].shape == op.in[1].shape, name(op), ": index and dy must have one shape, index is ", op.in[0], ", dy is ", op.in[1]);
  const int64_t size = op.attrs.integer("size");
  check(size >= 0, name(op), ": size must not be negative, got ", size);
  Shape out = op.in[1].shape;
  out[axis_of(op, out)] = size;
  return {typed(op.in[1].dtype, out)};
}

Outputs argmax(const OpTypes& op) {
  check_floating(op, 0);
  Shape out = op.in[0].shape;
  const int32_t axis = axis_of(op, out);
  check(out[axis] != 0, name(op), ": axis ", axis, " of ", op.in[0], " is empty, so it has no largest element");
  if (!op.attrs.flag("keep_dims")) return {typed(DType::i32, without(out, axis))};
  out[axis] = 1;
  return {typed(DType::i32, out)};
}

// --- reductions

Outputs reduce(const OpTypes& op) {
  check_floating(op, 0);
  const Shape& x = op.in[0].shape;
  const Ints& axes = op.attrs.ints("axes");
  std::array<bool, kMaxDims> gone{};
  if (axes.empty()) gone.fill(true);
  for (const int64_t given : axes) {
    const int32_t axis = normalize_axis(name(op), given, x.rank());
    check(!gone[static_cast<size_t>(axis)], name(op), ": axis ", axis, " is given twice in ", std::span<const int64_t>(axes));
    gone[static_cast<size_t>(axis)] = true;
  }
  Shape out;
  for (int32_t i = 0; i < x.rank(); ++i) {
    if (!gone[static_cast<size_t>(i)]) {
      out.push_back(x[i]);
      continue;
    }
    check(op.op != Op::max || x[i] != 0, "max: dimension ", i, " of ", op.in[0], " is empty, so it has no largest element");
    if (op.attrs.flag("keep_dims")) out.push_back(1);
  }
  return {typed(op.in[0].dtype, out)};
}

// --- shapes

Outputs reshape(const OpTypes& op) {
  const Shape &x = op.in[0].shape, shape(op.attrs.ints("shape"));
  check(count_of(op, x, 0, x.rank()) == count_of(op, shape, 0, shape.rank()), name(op), ": ", op.in[0], " and ",
        typed(op.in[0].dtype, shape), " differ in their number of elements");
  return {typed(op.in[0].dtype, shape)};
}

Outputs broadcast_to(const OpTypes& op) {
  const Shape &x = op.in[0].shape, shape(op.attrs.ints("shape"));
  const int32_t shift = shape.rank() - x.rank();
  bool fits = shift >= 0;
  for (int32_t i = 0; fits && i < x.rank(); ++i) fits = x[i] == 1 || x[i] == shape[i + shift];
  check(fits, name(op), ": ", op.in[0], " does not broadcast to ", typed(op.in[0].dtype, shape), "; only dimensions of size 1 stretch");
  return {typed(op.in[0].dtype, shape)};
}

Outputs transpose(const OpTypes& op) {
  const Shape& x = op.in[0].shape;
  const Ints& order = op.attrs.ints("order");
  std::array<bool, kMaxDims> seen{};
  bool permutes = order.size() == static_cast<size_t>(x.rank());
  Shape out;
  for (size_t i = 0; permutes && i < order.size(); ++i) {
    permutes = order[i] >= 0 && order[i] < x.rank() && !seen[static_cast<size_t>(order[i])];
    if (!permutes) break;
    seen[static_cast<size_t>(order[i])] = true;
    out.push_back(x[static_cast<int32_t>(order[i])]);
  }
  check(permutes, name(op), ": order ", std::span<const int64_t>(order), " is not a permutation of the ", x.rank(), " dimensions of ",
        op.in[0]);
  return {typed(op.in[0].dtype, out)};
}

// --- rows of the ranks along the tensor axis

Outputs tensor_gather(const OpTypes& op) {
  const int64_t ranks = op.attrs.integer("ranks");
  check(op.in[0].shape.rank() > 0 && ranks > 0, name(op), ": x must have rows, got ", op.in[0], " and ", ranks, " ranks");
  Type y = op.in[0];
  y.shape[0] = y.shape[0] * ranks;
  return {y};
}

Outputs tensor_rows(const OpTypes& op) {
  const int64_t ranks = op.attrs.integer("ranks");
  check(op.in[0].shape.rank() > 0 && ranks > 0 && op.in[0].shape[0] % ranks == 0, name(op), ": the rows of x, ", op.in[0],
        ", must be a multiple of the ", ranks, " ranks");
  Type y = op.in[0];
  y.shape[0] = y.shape[0] / ranks;
  return {y};
}

// --- slices along an axis of known size: a slice of the batch is not a slice of a sample

namespace {

int32_t fixed_axis_of(const OpTypes& op, size_t input) {
  const int32_t axis = axis_of(op, op.in[input].shape);
  check_fixed(op, input, axis);
  return axis;
}

Type with_dim(const Type& type, int32_t axis, int64_t dim) {
  Shape shape = type.shape;
  shape[axis] = dim;
  return typed(type.dtype, shape);
}

}  // namespace

Outputs slice(const OpTypes& op) {
  const int32_t axis = fixed_axis_of(op, 0);
  const int64_t start = op.attrs.integer("start"), end = op.attrs.integer("end");
  check(0 <= start && start <= end && end <= op.in[0].shape[axis], name(op), ": [", start, ":", end, "] is not within dimension ", axis,
        " of ", op.in[0]);
  return {with_dim(op.in[0], axis, end - start)};
}

Outputs pad(const OpTypes& op) {
  const int32_t axis = fixed_axis_of(op, 0);
  const int64_t before = op.attrs.integer("before"), after = op.attrs.integer("after");
  check(before >= 0 && after >= 0, name(op), ": before and after must not be negative, got ", before, " and ", after,
        "; use slice to remove elements");
  int64_t dim = op.in[0].shape[axis];
  check(!__builtin_add_overflow(dim, before, &dim) && !__builtin_add_overflow(dim, after, &dim), name(op), ": ", op.in[0], " padded by ",
        before, " and ", after, " does not fit in 64 bits");
  return {with_dim(op.in[0], axis, dim)};
}

Outputs split(const OpTypes& op) {
  const int32_t axis = fixed_axis_of(op, 0);
  const Ints& sizes = op.attrs.ints("sizes");
  Outputs out;
  int64_t rest = op.in[0].shape[axis];
  for (const int64_t size : sizes) {
    check(size >= 0 && size <= rest, name(op), ": sizes ", std::span<const int64_t>(sizes), " do not sum to dimension ", axis, " of ",
          op.in[0]);
    rest -= size;
    out.push_back(with_dim(op.in[0], axis, size));
  }
  check(rest == 0 && !sizes.empty(), name(op), ": sizes ", std::span<const int64_t>(sizes), " do not sum to dimension ", axis, " of ",
        op.in[0]);
  return out;
}

Outputs concat(const OpTypes& op) {
  check(!op.in.empty(), name(op), ": needs at least one input");
  const int32_t axis = fixed_axis_of(op, 0);
  int64_t dim = op.in[0].shape[axis];
  for (size_t i = 1; i < op.in.size(); ++i) {
    check_same_dtype(op, 0, i);
    const Shape& x = op.in[i].shape;
    check(x.rank() == op.in[0].shape.rank() && without(x, axis) == without(op.in[0].shape, axis), name(op),
          ": inputs must have the same shape in every dimension except axis ", axis, ", ", input_name(op, 0), " is ", op.in[0], ", ",
          input_name(op, i), " is ", op.in[i]);
    check_fixed(op, i, axis);
    check(!__builtin_add_overflow(dim, x[axis], &dim), name(op), ": the joined dimension does not fit in 64 bits");
  }
  return {with_dim(op.in[0], axis, dim)};
}

}  // namespace st::shape_rule
