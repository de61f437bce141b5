// How Adafactor cuts its work and its workspace.
#pragma once

#include "backend/cpu/grain.h"
#include "base/shape.h"

namespace st::cpu {

/// Matrices of rows x columns; a parameter of fewer than two dimensions is one row.
struct Matrices {
  explicit Matrices(const Shape& shape)
      : factored(shape.rank() > 1),
        columns(shape.rank() > 0 ? shape.last() : 1),
        rows(factored ? shape[shape.rank() - 2] : 1),
        count(rows * columns == 0 ? 0 : shape.elements() / (rows * columns)) {}

  bool factored;
  int64_t columns, rows, count;
  int64_t all_rows() const { return count * rows; }
};

/// Units of work: rows, or chunks of kGrain elements when the parameter is one row.
struct WorkUnits {
  explicit WorkUnits(const Matrices& m) : of(m.factored ? m.columns : kGrain), count(m.factored ? m.all_rows() : tasks_of(m.columns)) {}
  int64_t of, count;
};

inline int64_t partial_bytes(DType gradient, const Matrices& m) {
  return m.factored ? (row_blocks(m.rows) * m.columns * bytes_of_compute(gradient) + 63) / 64 * 64 : 0;
}

}  // namespace st::cpu
