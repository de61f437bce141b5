// y = f(x op(weight) + bias) + residual and its variants: the tiled product with an epilogue on each tile of y while it is in the cache.
// Also `pack`: lays out the weight as the product reads it, once for the products of several micro-batches.
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/kernels.h"
#include "backend/linear_call.h"
#include "backend/product_wish.h"

namespace st::cpu::ST_ISA {
namespace {

TileSchedule schedule_of(const GemmProblem& p, const Attrs& attrs) { return gemm_schedule(p, product_wish(attrs)); }

void run_fused_linear(const Call& call) {
  LinearCall linear(call);
  linear.operands.epilogue = &linear.epilogue;
  gemm(linear.problem, schedule_of(linear.problem, *call.attrs), linear.operands, workspace_of(call), *call.workers);
}

void run_pack(const Call& call) {
  const Operand& weight = call.in[0];
  const Attrs& attrs = *call.attrs;
  const GemmProblem p = linear_problem(attrs.integer("rows"), weight.shape, weight.dtype, attrs, false);
  check_problem(p, "pack");
  gemm_pack(p, schedule_of(p, attrs), as<std::byte>(weight), as<std::byte>(call.writes[0]), *call.workers);
}

}  // namespace

const Kernel kernel_fused_linear = {run_fused_linear};
const Kernel kernel_pack = {run_pack};

}  // namespace st::cpu::ST_ISA
