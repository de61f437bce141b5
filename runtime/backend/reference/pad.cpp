#include "backend/reference/movement.h"

namespace st::reference {

constinit const Kernel kernel_pad{[](const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  const int32_t axis = normalize_axis("pad", call.attrs->integer("axis"), x.shape.rank());
  const int64_t bytes = y.elements() * bytes_of(y.dtype);
  if (bytes > 0) std::memset(as<std::byte>(y), 0, static_cast<size_t>(bytes));
  move_slices(x, 0, y, call.attrs->integer("before"), x.shape[axis], axis);
}};

}  // namespace st::reference
