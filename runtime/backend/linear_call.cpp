#include "backend/linear_call.h"

#include <string_view>

#include "backend/kernel_side.h"
#include "ir/linear_places.h"
#include "ir/product_type.h"

namespace st {
namespace {

GemmActivation activation_of(const Attrs& attrs) {
  const std::string_view word = attrs.word("activation");
  if (word == "relu") return GemmActivation::relu;
  if (word == "gelu_tanh") return GemmActivation::gelu_tanh;
  if (word == "gelu_erf") return GemmActivation::gelu_erf;
  if (word == "silu") return GemmActivation::silu;
  return GemmActivation::none;
}

GemmProblem problem_of(const Shape& x, const Shape& weight, DType dtype, const Attrs& attrs) {
  return linear_problem(x.elements(0, x.rank() - 1), weight, dtype, attrs, attrs.flag("bias"));
}

}  // namespace

GemmProblem linear_problem(int64_t rows, const Shape& weight, DType dtype, const Attrs& attrs, bool bias) {
  const bool transposed = attrs.flag("transpose_weight");
  GemmProblem p;
  p.m = rows;
  p.k = weight[transposed ? 1 : 0];
  p.n = weight[transposed ? 0 : 1];
  p.a = {p.k, 1};
  p.b = transposed ? MatrixStrides{1, p.k} : MatrixStrides{p.n, 1};
  p.c = {p.n, 1};
  p.a_type = p.b_type = dtype;
  p.c_type = product_type(attrs, dtype);
  p.bias = bias;
  return p;
}

GemmProblem linear_problem(std::span<const Type> in, const Attrs& attrs) {
  const GemmProblem p = problem_of(in[0].shape, in[1].shape, in[1].dtype, attrs);
  check_problem(p, "fused_linear");
  return p;
}

LinearCall::LinearCall(const Call& call) : problem(problem_of(call.in[0].shape, call.in[1].shape, call.in[1].dtype, *call.attrs)) {
  const LinearPlaces places(*call.attrs);
  const auto in = [&](int32_t place) { return place < 0 ? nullptr : as<std::byte>(call.in[static_cast<size_t>(place)]); };
  const auto out = [&](int32_t place) { return place < 0 ? nullptr : as<std::byte>(call.out[static_cast<size_t>(place)]); };
  const auto side = [&](void* data) { return GemmSide{data, problem.c, 0}; };
  operands.a = in(0);
  operands.b = in(1);
  operands.c = out(0);
  operands.bias = in(places.bias);
  operands.packed_b = in(places.packed);
  epilogue.activation = activation_of(*call.attrs);
  epilogue.pre_activation = side(out(places.pre_activation));
  epilogue.derivative_at = side(in(places.at));
  epilogue.residual = side(in(places.residual));
  epilogue.column_sums = out(places.column_sums);
}

}  // namespace st
