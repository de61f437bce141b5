// rmsprop: torch.optim.RMSprop, whose alpha is beta2, on g = gradient * factor + weight_decay p:
//   v = beta2 v + (1 - beta2) g^2;  centered: a = beta2 a + (1 - beta2) g;  d = sqrt(v - a^2) + epsilon, a = 0 if not centered
//   momentum: b = momentum b + g / d, p -= lr b;  without: p -= lr g / d
#include "backend/reference/reference_kernels.h"
#include "backend/reference/update_inputs.h"

namespace st::reference {

constinit const Kernel kernel_rmsprop{[](const Call& call) {
  if (is_skipped(call)) return;
  const UpdateInputs in(call);
  const Operand &parameter = call.writes[0], &moment2 = call.writes[1];
  const double beta2 = call.attrs->real("beta2"), epsilon = in.epsilon(), momentum = call.attrs->real("momentum");
  const bool centered = call.attrs->flag("centered");
  for (int64_t i = 0; i < parameter.elements(); ++i) {
    const double g = in.penalised_gradient(i);
    const double v = beta2 * get(moment2, i) + (1 - beta2) * g * g;
    set(moment2, i, v);
    double variance = v;
    if (centered) {
      const Operand& mean = call.writes[momentum != 0 ? 3 : 2];
      const double a = beta2 * get(mean, i) + (1 - beta2) * g;
      set(mean, i, a);
      variance = std::max(v - a * a, 0.0);  // rounding may make it negative
    }
    double direction = g / (std::sqrt(variance) + epsilon);
    if (momentum != 0) {
      direction += momentum * get(call.writes[2], i);
      set(call.writes[2], i, direction);
    }
    set(parameter, i, get(parameter, i) - in.rate * direction);
  }
  write_copy(call);
}};

}  // namespace st::reference
