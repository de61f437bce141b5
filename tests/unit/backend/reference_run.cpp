#include "reference_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>

#include "backend/backend.h"
#include "base/error.h"
#include "ir/rules.h"

namespace st {
namespace {

Operand operand(const Array& array) { return {const_cast<double*>(array.memory.data()), array.type.dtype, array.type.shape}; }

std::vector<Type> types_of(const std::vector<Array>& arrays) {
  std::vector<Type> types;
  for (const Array& array : arrays) types.push_back(array.type);
  return types;
}

}  // namespace

Array::Array(DType dtype, const Shape& shape)
    : type{.dtype = dtype, .shape = shape, .layout = {}}, memory(static_cast<size_t>((shape.elements() * bytes_of(dtype) + 7) / 8)) {}

Array wave(const Shape& shape, double seed) {
  Array array(DType::f64, shape);
  for (int64_t i = 0; i < array.elements(); ++i) array.as<double>()[i] = std::sin(seed + 12.9898 * static_cast<double>(i * (i + 3)));
  return array;
}

std::vector<Array> run(Op op, const std::vector<Array>& in, const Attrs& given, const std::vector<Array*>& slots) {
  const auto backend = make_reference_backend();
  const Attrs attrs = make_attrs(op, given);
  const std::vector<Type> in_types = types_of(in), out_types = infer({op, in_types, attrs}, Mesh{});
  std::vector<Array> out;
  for (const Type& type : out_types) out.emplace_back(type.dtype, type.shape);

  std::vector<Operand> in_operands, out_operands, slot_operands;
  for (const Array& array : in) in_operands.push_back(operand(array));
  for (const Array& array : out) out_operands.push_back(operand(array));
  for (const Array* slot : slots) slot_operands.push_back(operand(*slot));

  const Kernel& kernel = backend->kernels()[static_cast<size_t>(op)];
  const int64_t bytes = kernel.workspace == nullptr ? 0 : kernel.workspace(in_types, out_types, attrs, 1);
  const auto workspace = backend->allocate(bytes, MemoryRole::workspace);
  Workers workers(1);
  Call call;
  call.in = in_operands;
  call.out = out_operands;
  call.reads = call.writes = slot_operands;
  call.attrs = &attrs;
  call.workspace = {workspace->data(), static_cast<size_t>(bytes)};
  call.workers = &workers;
  kernel.run(call);
  return out;
}

std::string error_of(Op op, const std::vector<Array>& in, const Attrs& attrs) {
  try {
    run(op, in, attrs);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.message();
  }
  ADD_FAILURE() << name_of(op) << " threw nothing";
  return {};
}

}  // namespace st
