#include "backend/reference/elementwise.h"

namespace st::reference {

// Integer to integer wraps around as in C. A float outside an integer's range is clamped to it, and NaN becomes 0 (torch leaves both
// undefined). To bool: everything except zero is true.
constinit const Kernel kernel_cast{[](const Call& call) {
  const Operand &x = call.in[0], &y = call.out[0];
  if (!is_whole(x.dtype) || !is_whole(y.dtype)) return map(call, [](double value) { return value; });
  for (int64_t i = 0; i < y.elements(); ++i) set_integer(y, i, get_integer(x, i));
}};

}  // namespace st::reference
