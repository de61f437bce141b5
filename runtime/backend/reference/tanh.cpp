#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_tanh{[](const Call& call) { map(call, [](double x) { return std::tanh(x); }); }};

constinit const Kernel kernel_tanh_backward{[](const Call& call) { map2(call, [](double y, double dy) { return dy * (1 - y * y); }); }};

}  // namespace st::reference
