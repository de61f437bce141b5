// c = op(a) op(b) over the last two dimensions: one tiled product, batched over leading dimensions where needed.
//
// If b is one matrix and a is not transposed, a's leading dimensions are rows like any other: [B, T, K] x [K, N] is one product of B*T
// rows. Else the leading dimensions with constant strides in a and b become the product's batch; the remaining ones are an outer loop.
#include <array>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/kernels.h"
#include "backend/product_wish.h"

namespace st::cpu::ST_ISA {
namespace {

struct Batches {
  GemmProblem problem;
  int32_t rank = 0;                                     // of the outer loop
  std::array<int64_t, kMaxDims> size{}, a{}, b{}, c{};  // innermost first; strides in elements
};

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

Batches plan(const Shape& a, DType a_type, const Shape& b, DType b_type, const Shape& c, DType c_type, const Attrs& attrs) {
  const bool transpose_a = attrs.flag("transpose_a"), transpose_b = attrs.flag("transpose_b");
  Batches out;
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

const std::byte* shifted(const void* base, int64_t elements, DType type) {
  return static_cast<const std::byte*>(base) + elements * bytes_of(type);
}

/// The product of one iteration of the outer loop.
GemmProblem product_of_matmul(std::span<const Type> in, std::span<const Type> out, const Attrs& attrs) {
  return plan(in[0].shape, in[0].dtype, in[1].shape, in[1].dtype, out[0].shape, out[0].dtype, attrs).problem;
}

int64_t workspace_of_matmul(std::span<const Type> in, std::span<const Type> out, const Attrs& attrs, int threads) {
  const GemmProblem p = product_of_matmul(in, out, attrs);
  check_problem(p, "matmul");
  return gemm_workspace(p, gemm_schedule(p, product_wish(attrs)), threads);
}

void run_matmul(const Call& call) {
  const Operand &a = call.in[0], &b = call.in[1], &c = call.out[0];
  const Batches batches = plan(a.shape, a.dtype, b.shape, b.dtype, c.shape, c.dtype, *call.attrs);
  check_problem(batches.problem, "matmul");
  const TileSchedule schedule = gemm_schedule(batches.problem, product_wish(*call.attrs));
  int64_t loops = 1;
  for (int32_t d = 0; d < batches.rank; ++d) loops *= batches.size[static_cast<size_t>(d)];
  for (int64_t i = 0; i < loops; ++i) {
    int64_t at_a = 0, at_b = 0, at_c = 0, rest = i;
    for (size_t d = 0; d < static_cast<size_t>(batches.rank); ++d) {
      const int64_t index = rest % batches.size[d];
      rest /= batches.size[d];
      at_a += index * batches.a[d], at_b += index * batches.b[d], at_c += index * batches.c[d];
    }
    const GemmOperands x{shifted(a.data, at_a, a.dtype), shifted(b.data, at_b, b.dtype),
                         const_cast<std::byte*>(shifted(c.data, at_c, c.dtype)), nullptr};
    gemm(batches.problem, schedule, x, call.workspace, *call.workers);
  }
}

}  // namespace

const Kernel kernel_matmul = {run_matmul, workspace_of_matmul, nullptr, product_of_matmul};

}  // namespace st::cpu::ST_ISA
