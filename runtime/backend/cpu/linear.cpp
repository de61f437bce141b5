// y = x op(weight) + bias: the tiled product with all leading dimensions as rows; the bias is added in the last write.
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/kernels.h"
#include "backend/linear_call.h"
#include "backend/product_wish.h"

namespace st::cpu::ST_ISA {
namespace {

void run_linear(const Call& call) {
  const Operand &x = call.in[0], &weight = call.in[1], &bias = call.in[2], &y = call.out[0];
  const GemmProblem p = linear_problem(x.shape.elements(0, x.shape.rank() - 1), weight.shape, weight.dtype, *call.attrs, true);
  check_problem(p, "linear");
  gemm(p, gemm_schedule(p, product_wish(*call.attrs)), {as<void>(x), as<void>(weight), as<void>(y), as<void>(bias)}, workspace_of(call),
       *call.workers);
}

}  // namespace

const Kernel kernel_linear = {run_linear};

}  // namespace st::cpu::ST_ISA
