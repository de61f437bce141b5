#include "backend/reference/activation_values.h"
#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_silu{[](const Call& call) { map(call, silu); }};

constinit const Kernel kernel_silu_backward{[](const Call& call) { map2(call, silu_backward); }};

}  // namespace st::reference
