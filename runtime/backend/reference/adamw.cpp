// adamw: torch.optim.AdamW on g = gradient * factor, at update t from 1, in the order torch applies it:
//   p *= 1 - lr weight_decay;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// When skip holds nothing is written: the slots keep their bits.
#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {

constinit const Kernel kernel_adamw{[](const Call& call) {
  const Operand &gradient = call.in[0], &rates = call.in[3];
  const Operand &parameter = call.writes[0], &moment1 = call.writes[1], &moment2 = call.writes[2];
  if (get_integer(call.in[2], 0) != 0) return;
  const double factor = get(call.in[1], 0), rate = get(rates, 0), update = get(rates, 1);
  const double beta1 = call.attrs->real("beta1"), beta2 = call.attrs->real("beta2");
  const double epsilon = call.attrs->real("epsilon"), decay = call.attrs->real("weight_decay");
  const double step = rate / (1 - std::pow(beta1, update)), root_of_bias2 = std::sqrt(1 - std::pow(beta2, update));
  for (int64_t i = 0; i < parameter.elements(); ++i) {
    const double g = get(gradient, i) * factor;
    const double m = beta1 * get(moment1, i) + (1 - beta1) * g;
    const double v = beta2 * get(moment2, i) + (1 - beta2) * g * g;
    const double p = get(parameter, i) * (1 - rate * decay);
    set(parameter, i, p - step * m / (std::sqrt(v) / root_of_bias2 + epsilon));
    set(moment1, i, m);
    set(moment2, i, v);
  }
}};

}  // namespace st::reference
