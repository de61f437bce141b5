#include "backend/reference/movement.h"

namespace st::reference {

constinit const Kernel kernel_concat{[](const Call& call) {
  const Operand& y = call.out[0];
  const int32_t axis = normalize_axis("concat", call.attrs->integer("axis"), y.shape.rank());
  int64_t to = 0;
  for (const Operand& piece : call.in) {
    move_slices(piece, 0, y, to, piece.shape[axis], axis);
    to += piece.shape[axis];
  }
}};

}  // namespace st::reference
