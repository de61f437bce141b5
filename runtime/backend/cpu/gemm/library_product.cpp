#include "backend/cpu/gemm/library_product.h"

#include <algorithm>

#include "backend/cpu/gemm/epilogue_rows.h"
#include "gemm/gemm_library.h"

namespace st::cpu::ST_ISA {
namespace {

// Each slice packs its rows of A and columns of B again, so slices are few and large, but enough for a few threads.
constexpr int64_t kMostSlices = 8, kLeastSide = 384;
constexpr int64_t kWholeRows = 16;  // slices begin at cache lines, and at the tiles of a library

LibraryFactor factor_of(const void* data, const MatrixStrides& at, int64_t rows, int64_t columns, int64_t row, int64_t column) {
  const bool transposed = at.column != 1;
  const int64_t stride = transposed ? std::max(at.column, rows) : std::max(at.row, columns);  // for a single row any stride will do
  return {static_cast<const float*>(data) + row * at.row + column * at.column, stride, transposed};
}

/// Rows and columns of a slice.
struct Slice {
  int64_t rows, columns;
};

Slice slice_of(const GemmProblem& p) {
  Slice slice{p.m, p.n};
  for (int64_t slices = 1; slices < kMostSlices; slices *= 2) {
    int64_t& longer = slice.rows >= slice.columns ? slice.rows : slice.columns;
    if (longer < 2 * kLeastSide) break;
    longer = ((longer + 1) / 2 + kWholeRows - 1) / kWholeRows * kWholeRows;
  }
  return slice;
}

void add_bias(const GemmProblem& p, const float* bias, bool stays, float* c, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  for (int64_t i = row; i < row + rows; ++i)
    for (int64_t j = column; j < column + columns; ++j) c[i * p.c.row + j] += bias[stays ? i : j];
}

}  // namespace

void library_product(const GemmProblem& p, const GemmLibrary& library, const GemmOperands& x, bool bias_along_rows, Workers& workers) {
  const Slice slice = slice_of(p);
  const int64_t down = (p.m + slice.rows - 1) / slice.rows, across = (p.n + slice.columns - 1) / slice.columns;
  auto* const c = static_cast<float*>(x.c);
  workers.run(down * across, [&](int64_t i) {
    const int64_t row = i / across * slice.rows, column = i % across * slice.columns;
    const int64_t rows = std::min(slice.rows, p.m - row), columns = std::min(slice.columns, p.n - column);
    const LibraryFactor a = factor_of(x.a, p.a, p.m, p.k, row, 0), b = factor_of(x.b, p.b, p.k, p.n, 0, column);
    library.multiply(rows, columns, p.k, p.alpha, a, b, p.beta, c + row * p.c.row + column, std::max(p.c.row, p.n));
    if (p.bias) add_bias(p, static_cast<const float*>(x.bias), bias_along_rows, c, row, rows, column, columns);
    if (x.epilogue != nullptr && x.epilogue->changes_c()) apply_epilogue(*x.epilogue, {x.c, p.c, p.c_type, row, rows, column, columns});
  });
}

GemmProblem with_packed_b(const GemmProblem& problem) {
  GemmProblem p = problem;
  p.b = p.b.column == 1 ? MatrixStrides{p.n, 1} : MatrixStrides{1, p.k};
  if (p.b_batch != 0) p.b_batch = p.k * p.n;
  return p;
}

void pack_for_library(const GemmProblem& problem, const void* b, std::byte* to, Workers& workers) {
  const GemmProblem packed = with_packed_b(problem);
  const bool transposed = problem.b.column != 1;
  const int64_t lines = transposed ? problem.n : problem.k, length = transposed ? problem.k : problem.n;
  const int64_t step = transposed ? problem.b.column : problem.b.row;
  workers.run(problem.k * problem.n == 0 ? 0 : elements_of_b(problem) / length, [&](int64_t i) {
    const float* from = static_cast<const float*>(b) + i / lines * problem.b_batch + i % lines * step;
    std::copy_n(from, length, reinterpret_cast<float*>(to) + i / lines * packed.b_batch + i % lines * length);
  });
}

}  // namespace st::cpu::ST_ISA
