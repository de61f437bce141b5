#include "ir/optimizer_state.h"

#include <algorithm>

#include "base/error.h"

namespace st {
namespace {

Shape without(const Shape& shape, int32_t axis) {
  Shape rest;
  for (int32_t i = 0; i < shape.rank(); ++i)
    if (i != axis) rest.push_back(shape[i]);
  return rest;
}

std::vector<OptimizerState> coded_moments(const Type& parameter) {
  const int64_t blocks = (parameter.shape.elements() + kMomentBlock - 1) / kMomentBlock;
  const Type codes{.dtype = DType::u8, .shape = parameter.shape, .layout = parameter.layout};
  const Type scales{.dtype = DType::f32, .shape = {blocks}, .layout = {}};
  return {{"moment1", codes}, {"moment1_scale", scales}, {"moment2", codes}, {"moment2_scale", scales}};
}

struct Grain {
  Op op;
  std::string_view name;
};

constexpr Grain kGrains[] = {
#define ST_OPTIMIZER(name, op, attributes, defaults, grain, help) {Op::op, #grain},
#include "ir/optimizers.def"
#undef ST_OPTIMIZER
};

}  // namespace

bool takes_whole(Op op) {
  return std::ranges::any_of(
      kGrains, [op](const Grain& grain) { return grain.op == op && (grain.name == "matrix" || grain.name == "rows_and_columns"); });
}

std::vector<OptimizerState> optimizer_state(Op op, const Attrs& attrs, const Type& parameter) {
  const int32_t rank = parameter.shape.rank();
  switch (op) {
    case Op::adamw:
      return {{"moment1", parameter}, {"moment2", parameter}};
    case Op::adamw_8bit:
      return coded_moments(parameter);
    case Op::sgd:
      if (attrs.real("momentum") == 0) return {};
      return {{"momentum", parameter}};
    case Op::lion:
      return {{"moment1", parameter}};
    case Op::rmsprop: {
      std::vector<OptimizerState> state = {{"moment2", parameter}};
      if (attrs.real("momentum") != 0) state.push_back({"momentum", parameter});
      if (attrs.flag("centered")) state.push_back({"gradient_mean", parameter});
      return state;
    }
    case Op::adagrad:
      return {{"square_sum", parameter}};
    case Op::adafactor: {
      if (rank < 2) return {{"variance", parameter}};
      const auto vector = [&](int32_t axis) {
        return Type{.dtype = parameter.dtype, .shape = without(parameter.shape, axis), .layout = {}};
      };
      return {{"row_variance", vector(rank - 1)}, {"column_variance", vector(rank - 2)}};
    }
    case Op::muon:
      check(rank == 2, "muon: the parameter must be a matrix, got ", parameter.shape, "; use another optimizer for it");
      return {{"momentum", parameter}};
    default:
      fail(Code::invalid_argument, text(name_of(op), ": is not an optimizer"));
  }
}

}  // namespace st
