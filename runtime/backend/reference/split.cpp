#include "backend/reference/movement.h"

namespace st::reference {

constinit const Kernel kernel_split{[](const Call& call) {
  const Operand& x = call.in[0];
  const int32_t axis = normalize_axis("split", call.attrs->integer("axis"), x.shape.rank());
  int64_t from = 0;
  for (const Operand& piece : call.out) {
    move_slices(x, from, piece, 0, piece.shape[axis], axis);
    from += piece.shape[axis];
  }
}};

}  // namespace st::reference
