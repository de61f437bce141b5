#include <algorithm>

#include "backend/reference/elementwise.h"

namespace st::reference {

constinit const Kernel kernel_clamp{[](const Call& call) {
  const double low = call.attrs->real("low"), high = call.attrs->real("high");
  map(call, [=](double x) {
    if (std::isnan(x)) return x;
    return std::min(std::max(x, low), high);  // as in torch: high wins when the bounds cross
  });
}};

}  // namespace st::reference
