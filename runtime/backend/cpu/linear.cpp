// y = x op(weight) + bias: the tiled product with all leading dimensions as rows; the bias is added in the last write.
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/kernels.h"
#include "backend/linear_call.h"
#include "backend/product_wish.h"

namespace st::cpu::ST_ISA {
namespace {

GemmProblem problem_of(const Shape& x, const Shape& weight, DType dtype, const Attrs& attrs) {
  const GemmProblem p = linear_problem(x.elements(0, x.rank() - 1), weight, dtype, attrs, true);
  check_problem(p, "linear");
  return p;
}

int64_t workspace_of_linear(std::span<const Type> in, std::span<const Type>, const Attrs& attrs, int threads) {
  const GemmProblem p = problem_of(in[0].shape, in[1].shape, in[1].dtype, attrs);
  return gemm_workspace(p, gemm_schedule(p, product_wish(attrs)), threads);
}

GemmProblem product_of_linear(std::span<const Type> in, std::span<const Type>, const Attrs& attrs) {
  return problem_of(in[0].shape, in[1].shape, in[1].dtype, attrs);
}

void run_linear(const Call& call) {
  const Operand &x = call.in[0], &weight = call.in[1], &bias = call.in[2], &y = call.out[0];
  const GemmProblem p = problem_of(x.shape, weight.shape, weight.dtype, *call.attrs);
  gemm(p, gemm_schedule(p, product_wish(*call.attrs)), {x.data, weight.data, y.data, bias.data}, call.workspace, *call.workers);
}

}  // namespace

const Kernel kernel_linear = {run_linear, workspace_of_linear, nullptr, product_of_linear};

}  // namespace st::cpu::ST_ISA
