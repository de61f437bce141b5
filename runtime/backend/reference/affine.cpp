#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_affine{[](const Call& call) {
  const double scale = call.attrs->real("scale"), shift = call.attrs->real("shift");
  map(call, [=](double x) { return scale * x + shift; });
}};

}  // namespace st::reference
