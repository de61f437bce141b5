#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_sigmoid{[](const Call& call) { map(call, [](double x) { return 1 / (1 + std::exp(-x)); }); }};

constinit const Kernel kernel_sigmoid_backward{[](const Call& call) { map2(call, [](double y, double dy) { return dy * y * (1 - y); }); }};

}  // namespace st::reference
