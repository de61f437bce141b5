#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_pow{[](const Call& call) { map2(call, [](double a, double b) { return std::pow(a, b); }); }};

}  // namespace st::reference
