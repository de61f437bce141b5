// y = sum of x over axes
#include "backend/cpu/reduce_axes.h"

namespace st::cpu::ST_ISA {
namespace {

void run_sum(const Call& call) {
  const MergedAxes axes("sum", call.in[0].shape, call.attrs->ints("axes"));
  with_float("sum", call.in[0].dtype, [&](auto t) { sum_axes<decltype(t)>(call, axes, 1); });
}

}  // namespace

const Kernel kernel_sum = {run_sum};

}  // namespace st::cpu::ST_ISA
