// adamw: torch.optim.AdamW on g = gradient * factor, at update t from 1, in the order torch applies it:
//   p *= 1 - lr weight_decay;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// Not decoupled it is torch.optim.Adam: g += weight_decay p replaces the decay of p.
#include "backend/reference/reference_kernels.h"
#include "backend/reference/update_inputs.h"

namespace st::reference {

constinit const Kernel kernel_adamw{[](const Call& call) {
  if (is_skipped(call)) return;
  const UpdateInputs in(call);
  const Operand &parameter = call.writes[0], &moment1 = call.writes[1], &moment2 = call.writes[2];
  const double beta1 = call.attrs->real("beta1"), beta2 = call.attrs->real("beta2"), epsilon = in.epsilon();
  const bool decoupled = call.attrs->flag("decoupled");
  const double step = in.rate / (1 - std::pow(beta1, in.number)), root_of_bias2 = std::sqrt(1 - std::pow(beta2, in.number));
  for (int64_t i = 0; i < parameter.elements(); ++i) {
    const double g = decoupled ? in.true_gradient(i) : in.penalised_gradient(i);
    const double m = beta1 * get(moment1, i) + (1 - beta1) * g;
    const double v = beta2 * get(moment2, i) + (1 - beta2) * g * g;
    const double p = get(parameter, i) * (decoupled ? 1 - in.rate * in.decay : 1);
    set(parameter, i, p - step * m / (std::sqrt(v) / root_of_bias2 + epsilon));
    set(moment1, i, m);
    set(moment2, i, v);
  }
  write_copy(call);
}};

}  // namespace st::reference
