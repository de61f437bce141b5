// c = op(a) op(b) over the last two dimensions (matmul_batches.h).
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/matmul_batches.h"
#include "backend/product_wish.h"

namespace st::cpu::ST_ISA {
namespace {

const std::byte* shifted(const void* base, int64_t elements, DType type) {
  return static_cast<const std::byte*>(base) + elements * bytes_of(type);
}

void run_matmul(const Call& call) {
  const Operand &a = call.in[0], &b = call.in[1], &c = call.out[0];
  const MatmulBatches batches = matmul_batches(a.shape, a.dtype, b.shape, b.dtype, c.shape, c.dtype, *call.attrs);
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
    const GemmOperands x{shifted(as<std::byte>(a), at_a, a.dtype), shifted(as<std::byte>(b), at_b, b.dtype),
                         const_cast<std::byte*>(shifted(as<std::byte>(c), at_c, c.dtype)), nullptr};
    gemm(batches.problem, schedule, x, workspace_of(call), *call.workers);
  }
}

}  // namespace

const Kernel kernel_matmul = {run_matmul};

}  // namespace st::cpu::ST_ISA
