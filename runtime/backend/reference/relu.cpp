#include "backend/reference/activation_values.h"
#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_relu{[](const Call& call) { map(call, relu); }};

constinit const Kernel kernel_relu_backward{[](const Call& call) { map2(call, [](double y, double dy) { return y > 0 ? dy : 0; }); }};

}  // namespace st::reference
