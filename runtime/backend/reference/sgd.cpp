// sgd: torch.optim.SGD on g = gradient * factor + weight_decay p:
//   b = momentum b + (1 - dampening) g, at the first update b = g;  p -= lr (nesterov ? g + momentum b : b), without momentum lr g
#include "backend/reference/reference_kernels.h"
#include "backend/reference/update_inputs.h"

namespace st::reference {

constinit const Kernel kernel_sgd{[](const Call& call) {
  if (is_skipped(call)) return;
  const UpdateInputs in(call);
  const Operand& parameter = call.writes[0];
  const double momentum = call.attrs->real("momentum"), dampening = call.attrs->real("dampening");
  for (int64_t i = 0; i < parameter.elements(); ++i) {
    double direction = in.any_gradient(i) + in.decay * get(parameter, i);
    if (momentum != 0) {
      const Operand& buffer = call.writes[1];
      const auto held = [&](double x) { return std::clamp(x, -in.limits.largest, in.limits.largest); };
      const double b = held(in.number == 1 ? direction : momentum * get(buffer, i) + (1 - dampening) * direction);
      direction = call.attrs->flag("nesterov") ? held(direction + momentum * b) : b;
      set(buffer, i, b);
    }
    set(parameter, i, get(parameter, i) - in.rate * direction);
  }
  write_copy(call);
}};

}  // namespace st::reference
