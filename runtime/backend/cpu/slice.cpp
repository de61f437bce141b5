// y = x[start:end] along axis
#include "backend/cpu/copy_blocks.h"

namespace st::cpu::ST_ISA {
namespace {

void run_slice(const Call& call) {
  const int32_t axis = normalize_axis("slice", call.attrs->integer("axis"), call.in[0].shape.rank());
  const AlongAxis x(call.in[0], axis), y(call.out[0], axis);
  const std::byte* const from = as<const std::byte>(call.in[0]) + call.attrs->integer("start") * x.step;
  copy_blocks(*call.workers, from, x.line, as<std::byte>(call.out[0]), y.line, y.line, x.outer);
}

}  // namespace

const Kernel kernel_slice = {run_slice};

}  // namespace st::cpu::ST_ISA
