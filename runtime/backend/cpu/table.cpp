// The table of this instruction set, from ops.def. Views have empty rows: the executor binds them without a call.
// All tables use the portable set's kernels for f64: f64 is for gradient checks, products have no kernel for it, and it doubled the size of
// an optimizer in each set. f64 scalars next to f32 operands do not count as f64.
#include "backend/cpu/table.h"

#include <algorithm>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"

#define ST_JOIN_(a, b) a##b
#define ST_JOIN(a, b) ST_JOIN_(a, b)

namespace st::cpu::ST_ISA {

const Kernel kernel_load;
const Kernel kernel_reshape;
const Kernel kernel_reduce_scatter;
const Kernel kernel_all_gather;
const Kernel kernel_rank_sums;
const Kernel kernel_gather_squares;
const Kernel kernel_send;
const Kernel kernel_tensor_gather;
const Kernel kernel_tensor_scatter;
const Kernel kernel_tensor_sum;
const Kernel kernel_tensor_share;
const Kernel kernel_receive;
const Kernel kernel_await;

namespace {

bool computes_in_double(const Call& call) {
  const auto floating = [](const Operand& operand) { return is_floating(operand.dtype); };
  const auto* first = std::ranges::find_if(call.in.data(), call.in.data() + call.in.size(), floating);
  if (first != call.in.data() + call.in.size()) return first->dtype == DType::f64;
  return !call.out.empty() && call.out[0].dtype == DType::f64;
}

/// For gradients that are not all of one type.
bool has_doubles(const Call& call) {
  return std::any_of(call.in.begin(), call.in.end(), [](const Operand& operand) { return operand.dtype == DType::f64; });
}

template <Op kOp, const Kernel& kOwn>
void run_own_or_portable(const Call& call) {
  if (kOp == Op::gradient_norm || kOp == Op::gradient_squares ? has_doubles(call) : computes_in_double(call))
    return (*st_cpu_table_portable())[static_cast<size_t>(kOp)].run(call);
  kOwn.run(call);
}

template <Op kOp, const Kernel& kOwn>
Kernel row_of() {
  Kernel row = kOwn;
  if (!kComputesDouble && row.run != nullptr) row.run = run_own_or_portable<kOp, kOwn>;
  return row;
}

}  // namespace

}  // namespace st::cpu::ST_ISA

extern "C" const st::OpTable* ST_JOIN(st_cpu_table_, ST_ISA)() {
  using namespace st::cpu::ST_ISA;
  static const st::OpTable table = {
#define ST_OP(name, ...) row_of<st::Op::name, kernel_##name>(),
#include "ir/ops.def"
#undef ST_OP
  };
  return &table;
}
