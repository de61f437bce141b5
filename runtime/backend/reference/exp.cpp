#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_exp{[](const Call& call) { map(call, [](double x) { return std::exp(x); }); }};

}  // namespace st::reference
