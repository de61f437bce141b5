#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {

constinit const Kernel kernel_fill{[](const Call& call) {
  const Operand& y = call.out[0];
  const double value = call.attrs->real("value");
  const int64_t n = y.elements();
  for (int64_t i = 0; i < n; ++i) set(y, i, value);
}};

}  // namespace st::reference
