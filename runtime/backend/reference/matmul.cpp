// matmul: c = op(a) op(b) over the last two dimensions, and linear: y = x op(weight) + bias.
// Both matrices are first copied as doubles with K last, a as [M, K] and b as [N, K], so that each output is one dot product.
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"
#include "backend/reference/strides.h"

namespace st::reference {
namespace {

struct Matrix {
  int64_t rows, columns;
};

/// The shape of op(X) for the last two dimensions.
Matrix matrix_of(const Shape& shape, bool transpose) {
  const Matrix m{shape[shape.rank() - 2], shape.last()};
  return transpose ? Matrix{m.columns, m.rows} : m;
}

/// Copies the matrix at element `from` of x as rows x columns; `transposed`: it is stored transposed.
void unpack(const Operand& x, int64_t from, Matrix m, bool transposed, double* to) {
  for (int64_t r = 0; r < m.rows; ++r) {
    for (int64_t c = 0; c < m.columns; ++c) to[r * m.columns + c] = get(x, from + (transposed ? c * m.rows + r : r * m.columns + c));
  }
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

Shape leading(const Shape& shape) { return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 2))); }

void matmul(const Call& call) {
  const Operand &a = call.in[0], &b = call.in[1], &c = call.out[0];
  const bool transpose_a = call.attrs->flag("transpose_a"), transpose_b = call.attrs->flag("transpose_b");
  const Matrix of_a = matrix_of(a.shape, transpose_a), of_b = matrix_of(b.shape, transpose_b);
  const int64_t rows = of_a.rows, columns = of_b.columns, inner = of_a.columns;
  auto* rows_of_a = reinterpret_cast<double*>(pointer_to(call.workspace));
  double* columns_of_b = rows_of_a + rows * inner;

  const Shape batches = leading(c.shape);
  const Strides batch_of_a = stretched(leading(a.shape), batches), batch_of_b = stretched(leading(b.shape), batches);
  for (int64_t batch = 0; batch < batches.elements(); ++batch) {
    unpack(a, place(batch, batches, batch_of_a) * rows * inner, of_a, transpose_a, rows_of_a);
    unpack(b, place(batch, batches, batch_of_b) * inner * columns, {columns, inner}, !transpose_b, columns_of_b);
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        set(c, (batch * rows + m) * columns + n, dot(rows_of_a + m * inner, columns_of_b + n * inner, inner));
      }
    }
  }
}

void linear(const Call& call) {
  const Operand &x = call.in[0], &weight = call.in[1], &bias = call.in[2], &y = call.out[0];
  const bool transpose = call.attrs->flag("transpose_weight");
  const auto [inner, columns] = matrix_of(weight.shape, transpose);
  const int64_t rows = x.shape.elements(0, x.shape.rank() - 1);
  auto* row = reinterpret_cast<double*>(pointer_to(call.workspace));
  double* columns_of_weight = row + inner;
  unpack(weight, 0, {columns, inner}, !transpose, columns_of_weight);
  for (int64_t m = 0; m < rows; ++m) {
    unpack(x, m * inner, {1, inner}, false, row);
    for (int64_t n = 0; n < columns; ++n) set(y, m * columns + n, dot(row, columns_of_weight + n * inner, inner) + get(bias, n));
  }
}

}  // namespace

constinit const Kernel kernel_matmul{matmul};
constinit const Kernel kernel_linear{linear};

}  // namespace st::reference
