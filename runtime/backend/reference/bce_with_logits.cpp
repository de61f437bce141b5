#include <algorithm>

#include "backend/reference/pair_loss.h"

namespace st::reference {

constinit const Kernel kernel_bce_with_logits{[](const Call& call) {
  pair_loss(call, [](double x, double t) { return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::fabs(x))); });
}};

constinit const Kernel kernel_bce_with_logits_backward{
    [](const Call& call) { pair_loss_backward(call, [](double x, double t) { return 1 / (1 + std::exp(-x)) - t; }); }};

}  // namespace st::reference
