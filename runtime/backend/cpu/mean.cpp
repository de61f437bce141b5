// y = mean of x over axes; NaN without elements
#include "backend/cpu/reduce_axes.h"

namespace st::cpu::ST_ISA {
namespace {

void run_mean(const Call& call) {
  const MergedAxes axes("mean", call.in[0].shape, call.attrs->ints("axes"));
  const double scale = 1 / static_cast<double>(axes.removed);  // without elements: 0 * infinity
  with_float("mean", call.in[0].dtype, [&](auto t) { sum_axes<decltype(t)>(call, axes, scale); });
}

}  // namespace

const Kernel kernel_mean = {run_mean};

}  // namespace st::cpu::ST_ISA
