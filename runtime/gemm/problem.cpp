#include "gemm/problem.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace st {
namespace {

struct Axis {
  int64_t size, stride;
};

/// Elements from the first to the end of the last; -1: their bytes, in the widest type, exceed any memory.
int64_t extent(std::array<Axis, 3> axes) {
  int64_t reach = 1;
  for (const auto& [size, stride] : axes) {
    if (size == 0) return 0;
    int64_t step = 0;
    if (__builtin_mul_overflow(size - 1, stride, &step) || __builtin_add_overflow(reach, step, &reach)) return -1;
  }
  return reach > INT64_MAX / 8 ? -1 : reach;
}

/// Whether no two elements share memory: from the smallest stride on, each stride exceeds the extent of the axes before it.
bool is_nested(std::array<Axis, 3> axes) {
  std::ranges::sort(axes, {}, &Axis::stride);
  int64_t inside = 1;
  for (const auto& [size, stride] : axes) {
    if (size <= 1) continue;
    if (stride < inside) return false;
    inside = (size - 1) * stride + inside;
  }
  return true;
}

void check_matrix(const char* op, const char* name, int64_t rows, int64_t columns, MatrixStrides strides, int64_t batch, int64_t step,
                  bool written) {
  check(strides.row >= 0 && strides.column >= 0 && step >= 0, op, ": strides of ", name, " must not be negative, got ", strides.row,
        " between rows, ", strides.column, " between columns, ", step, " between matrices");
  const Axis down{rows, strides.row}, across{columns, strides.column}, next{batch, step};
  check(extent({down, across, next}) >= 0, op, ": ", name, " of ", rows, "x", columns, ", batch ", batch,
        ", reaches further than any memory with strides ", strides.row, ", ", strides.column, ", ", step);
  if (rows == 0 || columns == 0) return;
  check(is_nested({down, across, Axis{1, 0}}), op, ": elements of ", name, " of ", rows, "x", columns, " share memory with strides of ",
        strides.row, " between rows and ", strides.column, " between columns; a row-major matrix needs at least ", columns, " and 1");
  check(!written || is_nested({down, across, next}), op, ": the ", batch, " matrices of ", name, " overlap, ", step,
        " elements apart; increase the distance");
}

}  // namespace

void check_problem(const GemmProblem& p, const char* op) {
  check(p.m >= 0 && p.n >= 0 && p.k >= 0 && p.batch >= 0, op, ": sizes must not be negative, got m ", p.m, ", n ", p.n, ", k ", p.k,
        ", batch ", p.batch);
  for (const DType type : {p.a_type, p.b_type, p.c_type}) {
    require(type == DType::f32 || type == DType::bf16 || type == DType::f16, Code::unsupported, op,
            ": the cpu backend multiplies f32, bf16 and f16, got ", type, "; cast first, or use the reference backend");
  }
}

void check_layout(const GemmProblem& p, const char* op) {
  check_matrix(op, "A", p.m, p.k, p.a, p.batch, p.a_batch, false);
  check_matrix(op, "B", p.k, p.n, p.b, p.batch, p.b_batch, false);
  check_matrix(op, "C", p.m, p.n, p.c, p.batch, p.c_batch, true);
  int64_t work = 1;
  for (const int64_t size : {p.m, p.n, p.k, p.batch, int64_t{64}})
    check(!__builtin_mul_overflow(work, std::max<int64_t>(size, 1), &work), op, ": m ", p.m, ", n ", p.n, ", k ", p.k, ", batch ", p.batch,
          " are too large: the number of operations overflows 64 bits");
}

bool runs_transposed(const GemmProblem& p) { return p.c.row == 1 && p.c.column != 1; }

GemmProblem transposed(const GemmProblem& p) {
  GemmProblem t = p;
  t.m = p.n, t.n = p.m;
  t.a = p.b.transposed(), t.b = p.a.transposed(), t.c = p.c.transposed();
  t.a_batch = p.b_batch, t.b_batch = p.a_batch;
  t.a_type = p.b_type, t.b_type = p.a_type;
  return t;
}

int64_t elements_of_b(const GemmProblem& p) { return p.k * p.n * (p.b_batch == 0 ? std::min<int64_t>(p.batch, 1) : p.batch); }

}  // namespace st
