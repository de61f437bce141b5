#include "backend/cpu/matmul_batches.h"

namespace st::cpu {
namespace {

/// Stride of each leading dimension of `shape`, aligned at the right with `rank` dimensions: 0 where it is broadcast.
std::array<int64_t, kMaxDims> leading_strides(const Shape& shape, int32_t rank) {
  std::array<int64_t, kMaxDims> strides{};
  const int32_t own = shape.rank() - 2;
  int64_t step = shape[own] * shape[own + 1];
  for (int32_t d = own - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d + rank - own)] = shape[d] == 1 ? 0 : step;
    step *= shape[d];
  }
  return strides;
}

}  // namespace

MatmulBatches matmul_batches(const Shape& a, DType a_type, const Shape& b, DType b_type, const Shape& c, DType c_type, const Attrs& attrs) {
  const bool transpose_a = attrs.flag("transpose_a"), transpose_b = attrs.flag("transpose_b");
  MatmulBatches out;
  GemmProblem& p = out.problem;
  p.a_type = a_type, p.b_type = b_type, p.c_type = c_type;
  p.m = c[c.rank() - 2];
  p.n = c.last();
  p.k = transpose_a ? a[a.rank() - 2] : a.last();
  p.a = transpose_a ? MatrixStrides{1, p.m} : MatrixStrides{p.k, 1};
  p.b = transpose_b ? MatrixStrides{1, p.k} : MatrixStrides{p.n, 1};
  p.c = {p.n, 1};
  const int64_t products = c.elements(0, c.rank() - 2);
  if (!transpose_a && b.elements(0, b.rank() - 2) == 1) {
    p.m *= products;
    return out;
  }
  const int32_t rank = c.rank() - 2;
  const auto of_a = leading_strides(a, rank), of_b = leading_strides(b, rank);
  int64_t of_c = p.m * p.n;
  bool inner = true;  // still extending the product's batch
  p.a_batch = p.b_batch = p.c_batch = 0;
  for (int32_t d = rank - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    if (c[d] != 1) {
      const bool first = p.batch == 1 && out.rank == 0;
      inner = inner && (first || (of_a[i] == p.a_batch * p.batch && of_b[i] == p.b_batch * p.batch));
      if (inner) {
        if (first) p.a_batch = of_a[i], p.b_batch = of_b[i], p.c_batch = of_c;
        p.batch *= c[d];
      } else {
        const auto at = static_cast<size_t>(out.rank++);
        out.size[at] = c[d], out.a[at] = of_a[i], out.b[at] = of_b[i], out.c[at] = of_c;
      }
    }
    of_c *= c[d];
  }
  return out;
}

}  // namespace st::cpu
