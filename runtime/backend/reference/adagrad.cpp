// adagrad: torch.optim.Adagrad on g = gradient * factor + weight_decay p, with r = lr / (1 + (t - 1) rate_decay):
//   s += g^2, from initial_accumulator_value on;  p -= r g / (sqrt(s) + epsilon)
#include "backend/reference/reference_kernels.h"
#include "backend/reference/update_inputs.h"

namespace st::reference {

constinit const Kernel kernel_adagrad{[](const Call& call) {
  if (is_skipped(call)) return;
  const UpdateInputs in(call);
  const Operand &parameter = call.writes[0], &sum = call.writes[1];
  const double rate = in.rate / (1 + (in.number - 1) * call.attrs->real("rate_decay")), epsilon = in.epsilon();
  const double initial = in.number == 1 ? call.attrs->real("initial_accumulator_value") : 0;
  for (int64_t i = 0; i < parameter.elements(); ++i) {
    const double g = in.penalised_gradient(i);
    const double s = std::min(get(sum, i) + initial + g * g, in.limits.largest);
    set(sum, i, s);
    set(parameter, i, get(parameter, i) - rate * g / (std::sqrt(s) + epsilon));
  }
  write_copy(call);
}};

}  // namespace st::reference
