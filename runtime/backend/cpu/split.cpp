// slices of x along axis
#include "backend/cpu/copy_blocks.h"

namespace st::cpu::ST_ISA {
namespace {

void run_split(const Call& call) {
  const int32_t axis = normalize_axis("split", call.attrs->integer("axis"), call.in[0].shape.rank());
  const AlongAxis x(call.in[0], axis);
  const std::byte* from = as<const std::byte>(call.in[0]);
  for (const Operand& piece : call.out) {
    const AlongAxis y(piece, axis);
    copy_blocks(*call.workers, from, x.line, as<std::byte>(piece), y.line, y.line, x.outer);
    from += y.line;
  }
}

}  // namespace

const Kernel kernel_split = {run_split};

}  // namespace st::cpu::ST_ISA
