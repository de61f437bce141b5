#include "backend/cuda/index_faults.h"

#include "backend/index_check.h"
#include "base/error.h"

namespace st::cuda {
namespace {

/// Throws if the token is outside the vocabulary of a weight with so many rows.
void check_token_of(Op op, const Call& call, int64_t rows, int64_t value, int64_t element) {
  const int64_t classes = call.attrs->integer("classes");
  check_token(name_of(op), value, element, indices_of(op, call).shape, classes > 0 ? classes : rows);
}

void check_index_of(Op op, const Call& call, const Shape& shape, int64_t value, int64_t element) {
  const int32_t axis = normalize_axis(name_of(op), call.attrs->integer("axis"), shape.rank());
  check_index(name_of(op), value, element, indices_of(op, call).shape, shape[axis]);
}

void check_target_of(Op op, const Call& call, int64_t value, int64_t element) {
  const Attrs& attrs = *call.attrs;
  const int64_t classes = attrs.has("classes") ? attrs.integer("classes") : call.in[0].shape.last();
  if (value == attrs.integer("ignore_index")) return;
  check_target(op == Op::fused_cross_entropy ? "cross_entropy" : name_of(op), value, element, indices_of(op, call).shape, classes);
}

void check_in_range(Op op, const Call& call, int64_t value, int64_t element) {
  switch (op) {
    case Op::embedding:
      return check_token_of(op, call, call.in[0].shape[0], value, element);
    case Op::embedding_backward:
      return check_token_of(op, call, call.out[0].shape[0], value, element);
    case Op::gather:
      return check_index_of(op, call, call.in[0].shape, value, element);
    case Op::gather_backward:
      return check_index_of(op, call, call.out[0].shape, value, element);
    default:
      return check_target_of(op, call, value, element);
  }
}

}  // namespace

const Operand& indices_of(Op op, const Call& call) {
  switch (op) {
    case Op::embedding:
    case Op::gather:
    case Op::cross_entropy:
    case Op::cross_entropy_backward:
    case Op::fused_cross_entropy:
    case Op::vocabulary_terms:
    case Op::vocabulary_cross_entropy:
    case Op::vocabulary_cross_entropy_backward:
      return call.in[1];
    case Op::embedding_backward:
    case Op::gather_backward:
      return call.in[0];
    default:
      fail(Code::internal, text("cuda: ", name_of(op), " reads no indices"));
  }
}

void fail_at_index(Op op, const Call& call, std::initializer_list<int64_t> values, int64_t element) {
  for (const int64_t value : values) check_in_range(op, call, value, element);
  fail(Code::internal,
       text("cuda: ", name_of(op), " reported an index that is in range, at element ", element, " of ", indices_of(op, call).shape));
}

}  // namespace st::cuda
