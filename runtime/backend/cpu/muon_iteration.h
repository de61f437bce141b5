// The products of muon.cpp's iteration, and its workspace before that of the products.
#pragma once

#include "backend/cpu/grain.h"
#include "base/shape.h"
#include "gemm/problem.h"

namespace st::cpu {

constexpr int64_t aligned(int64_t floats) { return (floats + 15) / 16 * 16; }

/// The three products of an iteration over a matrix.
struct MuonIteration {
  static constexpr float kLinear = 3.4445F, kCubic = -4.7750F, kQuintic = 2.0315F;

  explicit MuonIteration(const Shape& shape) : rows(shape[0]), columns(shape[1]), side(std::min(rows, columns)) {
    const bool wide = rows <= columns;
    const MatrixStrides x{columns, 1}, turned{1, columns}, square{side, 1};
    gram.m = gram.n = side, gram.k = std::max(rows, columns);
    gram.a = wide ? x : turned, gram.b = wide ? turned : x, gram.c = square;
    polynomial.m = polynomial.n = polynomial.k = side;
    polynomial.a = polynomial.b = polynomial.c = square;
    polynomial.alpha = kQuintic, polynomial.beta = kCubic;
    next.m = rows, next.n = columns, next.k = side;
    next.a = wide ? square : x, next.b = wide ? x : MatrixStrides{1, side}, next.c = x;
    next.beta = kLinear;
  }

  int64_t rows, columns, side;
  GemmProblem gram, polynomial, next;

  int64_t floats() const { return 2 * aligned(rows * columns) + 2 * aligned(side * side) + aligned(2 * tasks_of(rows * columns)); }
};

}  // namespace st::cpu
