#include "backend/reference/pair_loss.h"

namespace st::reference {

constinit const Kernel kernel_mse{[](const Call& call) { pair_loss(call, [](double x, double t) { return (x - t) * (x - t); }); }};

constinit const Kernel kernel_mse_backward{
    [](const Call& call) { pair_loss_backward(call, [](double x, double t) { return 2 * (x - t); }); }};

}  // namespace st::reference
