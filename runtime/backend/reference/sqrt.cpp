#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_sqrt{[](const Call& call) { map(call, [](double x) { return std::sqrt(x); }); }};

}  // namespace st::reference
