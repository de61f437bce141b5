#include "backend/reference/movement.h"

namespace st::reference {

constinit const Kernel kernel_transpose{[](const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  const Ints& order = call.attrs->ints("order");
  const Strides of_x = strides_of(x.shape);
  Strides strides{};
  for (size_t i = 0; i < order.size(); ++i) strides[i] = of_x[static_cast<size_t>(order[i])];
  move_strided(x, strides, y);
}};

}  // namespace st::reference
