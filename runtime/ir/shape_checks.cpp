#include "base/error.h"
#include "ir/shape_rules.h"

namespace st::shape_rule {

void append_text(std::string& out, const InputName& name) {
  const auto& inputs = info_of(name.op.op).inputs;
  const auto& row = inputs[std::min(name.input, inputs.size() - 1)];
  out += row.variadic ? text(row.name, "[", name.input + 1 - inputs.size(), "]") : row.name;
}

Shape part(const Shape& shape, int32_t from, int32_t to) {
  return Shape(shape.dims().subspan(static_cast<size_t>(from), static_cast<size_t>(to - from)));
}

Shape without(const Shape& shape, int32_t axis) {
  Shape out;
  for (int32_t i = 0; i < shape.rank(); ++i)
    if (i != axis) out.push_back(shape[i]);
  return out;
}

bool Count::operator==(const Count& other) const {
  return coefficient == other.coefficient && (batches == other.batches || coefficient == 0);
}

Count count_of(const OpTypes& op, const Shape& shape, int32_t from, int32_t to) {
  Count count;
  for (int32_t i = from; i < to; ++i) {
    const int64_t dim = shape[i];
    check(dim != INT64_MIN && !__builtin_mul_overflow(count.coefficient, dim < 0 ? -dim : dim, &count.coefficient), name(op), ": ", shape,
          " has more elements than fit in 64 bits");
    count.batches += is_symbolic(dim) ? 1 : 0;
  }
  return count;
}

void check_floating(const OpTypes& op, size_t input) {
  check(is_floating(op.in[input].dtype), name(op), ": ", input_name(op, input), " must be floating (f32, f64, bf16, f16), got ",
        op.in[input], "; cast it first");
}

void check_floating(const OpTypes& op) {
  for (size_t i = 0; i < op.in.size(); ++i) {
    check_floating(op, i);
    check_same_dtype(op, 0, i);
  }
}

void check_same_dtype(const OpTypes& op, size_t a, size_t b) {
  check(op.in[a].dtype == op.in[b].dtype, name(op), ": ", input_name(op, a), " is ", op.in[a], ", ", input_name(op, b), " is ", op.in[b],
        "; both must have the same dtype, cast one of them first");
}

void check_same_type(const OpTypes& op, size_t a, size_t b) {
  check_same_dtype(op, a, b);
  check(op.in[a].shape == op.in[b].shape, name(op), ": ", input_name(op, a), " is ", op.in[a], ", ", input_name(op, b), " is ", op.in[b],
        "; both must have the same shape");
}

void check_index(const OpTypes& op, size_t input) {
  const auto dtype = op.in[input].dtype;
  check(dtype == DType::i32 || dtype == DType::i64, name(op), ": ", input_name(op, input), " must be i32 or i64, got ", op.in[input],
        "; cast it first");
}

void check_rank(const OpTypes& op, size_t input, int32_t at_least) {
  check(op.in[input].shape.rank() >= at_least, name(op), ": ", input_name(op, input), " needs at least ", at_least, " dimensions, got ",
        op.in[input]);
}

void check_is(const OpTypes& op, size_t input, DType dtype, const Shape& shape) {
  const Type wanted = typed(dtype, shape);
  check(op.in[input].dtype == dtype && op.in[input].shape == shape, name(op), ": ", input_name(op, input), " must be ", wanted, ", got ",
        op.in[input]);
}

int32_t axis_of(const OpTypes& op, const Shape& shape) { return normalize_axis(name(op), op.attrs.integer("axis"), shape.rank()); }

void check_fixed(const OpTypes& op, size_t input, int32_t axis) {
  check(!is_symbolic(op.in[input].shape[axis]), name(op), ": dimension ", axis, " of ", input_name(op, input), ", ", op.in[input],
        ", depends on the batch, so its size is not known yet; choose another axis or build with a fixed batch");
}

}  // namespace st::shape_rule
