#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_abs{[](const Call& call) { map(call, [](double x) { return std::fabs(x); }); }};

}  // namespace st::reference
