#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_neg{[](const Call& call) { map(call, [](double x) { return -x; }); }};

}  // namespace st::reference
