#include "backend/reference/movement.h"

namespace st::reference {

constinit const Kernel kernel_slice{[](const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  const int32_t axis = normalize_axis("slice", call.attrs->integer("axis"), x.shape.rank());
  move_slices(x, call.attrs->integer("start"), y, 0, y.shape[axis], axis);
}};

}  // namespace st::reference
