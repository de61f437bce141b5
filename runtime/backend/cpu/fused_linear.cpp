// y = f(x op(weight) + bias) + residual and its variants: the tiled product with an epilogue on each tile of y while it is in the cache.
// Also `pack`: lays out the weight as the product reads it, once for the products of several micro-batches.
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/small_product.h"
#include "backend/cpu/kernels.h"
#include "backend/linear_call.h"
#include "backend/product_wish.h"

namespace st::cpu::ST_ISA {
namespace {

TileSchedule schedule_of(const GemmProblem& p, const Attrs& attrs) { return gemm_schedule(p, product_wish(attrs)); }

int64_t workspace_of_fused_linear(std::span<const Type> in, std::span<const Type>, const Attrs& attrs, int threads) {
  const GemmProblem p = linear_problem(in, attrs);
  return gemm_workspace(p, schedule_of(p, attrs), threads);
}

GemmProblem product_of_fused_linear(std::span<const Type> in, std::span<const Type>, const Attrs& attrs) {
  return linear_problem(in, attrs);
}

/// Packing costs the same for few rows as for many: for 1024 rows it is 1 % of a training step (tests/bench/README.md), not worth a second
/// copy of the weight. Very few rows and the smallest products read the weight in place, as fast as packed.
constexpr int64_t kRowsWorthPacking = 512, kFewestRows = 40;

int64_t packed_weight_of(std::span<const Type> in, const Attrs& attrs) {
  const GemmProblem p = linear_problem(in, attrs);
  const TileSchedule schedule = schedule_of(p, attrs);
  if (schedule.library != nullptr) return 0;  // reads it unpacked
  const bool in_place = (!schedule.packs_b() && p.m <= kFewestRows) || is_small(p, schedule, false, 1);
  return in_place || p.m > kRowsWorthPacking ? 0 : gemm_packed_bytes(p, schedule);
}

void run_fused_linear(const Call& call) {
  LinearCall linear(call);
  linear.operands.epilogue = &linear.epilogue;
  gemm(linear.problem, schedule_of(linear.problem, *call.attrs), linear.operands, call.workspace, *call.workers);
}

void run_pack(const Call& call) {
  const Operand& weight = call.in[0];
  const Attrs& attrs = *call.attrs;
  const GemmProblem p = linear_problem(attrs.integer("rows"), weight.shape, weight.dtype, attrs, false);
  check_problem(p, "pack");
  gemm_pack(p, schedule_of(p, attrs), weight.data, call.writes[0].as<std::byte>(), *call.workers);
}

}  // namespace

const Kernel kernel_fused_linear = {run_fused_linear, workspace_of_fused_linear, packed_weight_of, product_of_fused_linear};
const Kernel kernel_pack = {run_pack, nullptr};

}  // namespace st::cpu::ST_ISA
