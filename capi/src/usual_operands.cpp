#include "usual_operands.h"

#include "base/host_view.h"
#include "views.h"

namespace st::capi {
namespace {

bool lie_apart(const st_view& a, int64_t bytes_of_a, const st_view& b, int64_t bytes_of_b) {
  const auto at = reinterpret_cast<uintptr_t>(a.data), other = reinterpret_cast<uintptr_t>(b.data);
  return at + static_cast<uintptr_t>(bytes_of_a) <= other || other + static_cast<uintptr_t>(bytes_of_b) <= at;
}

}  // namespace

UsualOperands::UsualOperands(const GemmProblem& p)
    : a_(matrix_of(p.a_type, p.m, p.k, p.a, p.batch)),
      b_(matrix_of(p.b_type, p.k, p.n, p.b, p.batch)),
      c_(matrix_of(p.c_type, p.m, p.n, p.c, p.batch)) {}

UsualOperands::Matrix UsualOperands::matrix_of(DType type, int64_t rows, int64_t columns, MatrixStrides strides, int64_t batch) {
  Matrix m{static_cast<st_dtype>(type),           rows, columns, strides, strides == MatrixStrides{columns, 1},
           static_cast<uintptr_t>(bytes_of(type))};
  if (batch == 1) m.bytes = extent_bytes(type, {rows, columns}, {strides.row, strides.column});
  return m;
}

bool UsualOperands::is_usual(const Matrix& m, const st_view* view) {
  if (view == nullptr || m.bytes <= 0 || view->dtype != m.dtype || view->rank != 2 || view->dims == nullptr) return false;
  if (view->dims[0] != m.rows || view->dims[1] != m.columns || view->data == nullptr || view->bytes < m.bytes) return false;
  if (!is_of_host(*view)) return false;
  if (reinterpret_cast<uintptr_t>(view->data) & (m.width - 1)) return false;
  return view->strides == nullptr ? m.is_plain : view->strides[0] == m.strides.row && view->strides[1] == m.strides.column;
}

std::optional<GemmOperands> UsualOperands::of(const st_view* a, const st_view* b, bool packed, const st_view* c) const {
  if (!is_usual(a_, a) || !is_usual(c_, c) || !lie_apart(*a, a_.bytes, *c, c_.bytes)) return std::nullopt;
  if (!packed && (!is_usual(b_, b) || !lie_apart(*b, b_.bytes, *c, c_.bytes))) return std::nullopt;
  GemmOperands operands;
  operands.a = a->data;
  if (!packed) operands.b = b->data;
  operands.c = c->data;
  return operands;
}

}  // namespace st::capi
