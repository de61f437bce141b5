#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_log{[](const Call& call) { map(call, [](double x) { return std::log(x); }); }};

}  // namespace st::reference
