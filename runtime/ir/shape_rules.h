// Checks shared by several shape rules. Internal to ir: the rules themselves are reached through infer_shapes().
#pragma once

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ir/rules.h"

namespace st::shape_rule {

using Outputs = std::vector<Type>;

inline std::string_view name(const OpTypes& op) { return name_of(op.op); }

/// An input's name, formatted only when an error needs it.
struct InputName {
  const OpTypes& op;
  size_t input;
};
inline InputName input_name(const OpTypes& op, size_t input) { return {op, input}; }
void append_text(std::string& out, const InputName& name);

inline bool is_symbolic(int64_t dim) { return dim < 0; }
inline Type typed(DType dtype, const Shape& shape) { return {.dtype = dtype, .shape = shape, .layout = {}}; }

/// Row statistics (log-sum-exp, mean, 1/deviation) are at least f32.
inline DType statistic_of(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

/// Dimensions [from, to) of a shape.
Shape part(const Shape& shape, int32_t from, int32_t to);
inline Shape without_last(const Shape& shape) { return part(shape, 0, shape.rank() - 1); }
Shape without(const Shape& shape, int32_t axis);

/// A number of elements: a coefficient times a power of the batch.
struct Count {
  int64_t coefficient = 1;
  int32_t batches = 0;
  bool operator==(const Count& other) const;  // zero elements are equal for any power of the batch
};
Count count_of(const OpTypes& op, const Shape& shape, int32_t from, int32_t to);

// Each check throws invalid_argument with the op, the operand and its type.
void check_floating(const OpTypes& op);  // all inputs, one dtype
void check_floating(const OpTypes& op, size_t input);
void check_same_dtype(const OpTypes& op, size_t a, size_t b);
void check_same_type(const OpTypes& op, size_t a, size_t b);  // dtype and shape
void check_index(const OpTypes& op, size_t input);            // i32 or i64
void check_rank(const OpTypes& op, size_t input, int32_t at_least);
void check_is(const OpTypes& op, size_t input, DType dtype, const Shape& shape);
int32_t axis_of(const OpTypes& op, const Shape& shape);           // attribute "axis", counted from the front
void check_fixed(const OpTypes& op, size_t input, int32_t axis);  // the dimension does not depend on the batch

}  // namespace st::shape_rule
