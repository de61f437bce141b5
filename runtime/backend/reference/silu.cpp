#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_silu{[](const Call& call) { map(call, [](double x) { return x / (1 + std::exp(-x)); }); }};

constinit const Kernel kernel_silu_backward{[](const Call& call) {
  map2(call, [](double x, double dy) {
    const double s = 1 / (1 + std::exp(-x));
    return dy * s * (1 + x * (1 - s));
  });
}};

}  // namespace st::reference
