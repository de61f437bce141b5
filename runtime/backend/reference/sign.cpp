#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_sign{[](const Call& call) {
  map(call, [](double x) { return x > 0 ? 1 : x < 0 ? -1 : x; });  // 0 and NaN stay
}};

}  // namespace st::reference
