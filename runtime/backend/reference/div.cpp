#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_div{[](const Call& call) { map2(call, [](double a, double b) { return a / b; }); }};

}  // namespace st::reference
