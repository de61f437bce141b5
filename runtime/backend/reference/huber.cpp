#include <algorithm>

#include "backend/reference/pair_loss.h"

namespace st::reference {

constinit const Kernel kernel_huber{[](const Call& call) {
  const double delta = call.attrs->real("delta");
  pair_loss(call, [=](double x, double t) {
    const double d = std::fabs(x - t);
    return d <= delta ? d * d / 2 : delta * (d - delta / 2);
  });
}};

constinit const Kernel kernel_huber_backward{[](const Call& call) {
  const double delta = call.attrs->real("delta");
  pair_loss_backward(call, [=](double x, double t) { return std::clamp(x - t, -delta, delta); });
}};

}  // namespace st::reference
