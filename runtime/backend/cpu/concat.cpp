// y = xs joined along axis
#include "backend/cpu/copy_blocks.h"

namespace st::cpu::ST_ISA {
namespace {

void run_concat(const Call& call) {
  const int32_t axis = normalize_axis("concat", call.attrs->integer("axis"), call.out[0].shape.rank());
  const AlongAxis y(call.out[0], axis);
  std::byte* to = as<std::byte>(call.out[0]);
  for (const Operand& piece : call.in) {
    const AlongAxis x(piece, axis);
    copy_blocks(*call.workers, as<const std::byte>(piece), x.line, to, y.line, x.line, y.outer);
    to += x.line;
  }
}

}  // namespace

const Kernel kernel_concat = {run_concat};

}  // namespace st::cpu::ST_ISA
