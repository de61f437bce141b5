// fused_linear by the product's formula and its stages in order; a packed weight is its elements as doubles.
#include "backend/linear_call.h"
#include "backend/reference/reference_gemm.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {

constinit const Kernel kernel_fused_linear{[](const Call& call) {
  LinearCall linear(call);
  linear.operands.epilogue = &linear.epilogue;
  gemm_kernels().run(linear.problem, {}, linear.operands, workspace_of(call), *call.workers);
}};

// Runs only on request: packing gains nothing here, so the kernel above never requests it.
constinit const Kernel kernel_pack{[](const Call& call) {
  const Operand& weight = call.in[0];
  const Attrs& attrs = *call.attrs;
  const GemmProblem p = linear_problem(attrs.integer("rows"), weight.shape, weight.dtype, attrs, false);
  gemm_kernels().pack(p, {}, as<std::byte>(weight), as<std::byte>(call.writes[0]), *call.workers);
}};

}  // namespace st::reference
